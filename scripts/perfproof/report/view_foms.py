"""Figures of merit and their integrity vector, as labelled text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from perfproof.report.units import number, percent, quantity, shown
from perfproof.report.verdict import PRIMARY_WORDS
from perfproof.schema.foms import Distribution, Foms, Integrity, LossVerdict, Method

METHOD_WORDS = {
    Method.REALISED_BATCH: "samples as realised / step time",
    Method.NOMINAL_BATCH: "nominal batch / step time",
    Method.EPOCH_RATE: "samples of an epoch / epoch time",
}
LOSS_WORDS = {
    LossVerdict.DECREASING: "decreasing",
    LossVerdict.NOT_DECREASING: "not decreasing",
    LossVerdict.NON_FINITE: "not finite",
    LossVerdict.TOO_SHORT: "too short to tell",
    LossVerdict.UNKNOWN: "unknown",
}


@dataclass(frozen=True)
class Field:
    """One labelled value."""

    label: str
    text: str
    note: str = ""


seconds = partial(quantity, unit="s")
rate = partial(quantity, unit="samples/s")
octets = partial(quantity, unit="B")


def method(value: Method) -> str:
    """How a figure was computed, in words."""
    return METHOD_WORDS[value]


def figures(foms: Foms) -> list[Field]:
    """The figures of merit, the primary one first."""
    primary = foms.primary
    name = PRIMARY_WORDS.get(primary.name, primary.name)
    return [
        Field(
            f"Primary: {name}",
            shown(primary, "value", partial(quantity, unit=primary.unit)),
            f"{primary.direction} is better",
        ),
        Field("Primary: method", shown(primary, "method", method)),
        Field("Throughput", shown(foms, "throughput_samples_per_s", rate), "all ranks"),
        Field("Throughput: method", shown(foms, "throughput_method", method)),
        *_step_time(foms),
        Field("Epoch time", shown(foms, "epoch_time_s", seconds), "compare at equal samples only"),
        Field("Samples per epoch", shown(foms, "samples_per_epoch", number), "all ranks"),
        Field("GPU memory reserved", shown(foms, "hbm_reserved_bytes", octets), "peak"),
        Field("GPU memory reserved, share", shown(foms, "hbm_reserved_fraction", percent)),
        Field("Final loss", shown(foms, "final_loss", partial(number, digits=6))),
        Field("Losses not finite", shown(foms, "non_finite_count", number), "all ranks"),
        Field("Loss curve", LOSS_WORDS[foms.loss_verdict]),
    ]


def _step_time(foms: Foms) -> list[Field]:
    spread = foms.step_time_s
    if spread is None:
        return [Field("Step time", shown(foms, "step_time_s"))]
    return [
        Field("Step time, median", seconds(spread.median), f"{spread.n} steady, unprofiled steps"),
        Field("Step time, mean", seconds(spread.mean), _error(spread)),
        Field(
            "Step time, 5th to 95th percentile", f"{seconds(spread.p5)} to {seconds(spread.p95)}"
        ),
    ]


def _error(spread: Distribution) -> str:
    return f"standard error over steps {shown(spread, 'standard_error', seconds)}"


def integrity(vector: Integrity) -> list[Field]:
    """What must be equal before this run may be compared with another."""
    return [Field(label, shown(vector, name, show), note) for label, name, show, note in _INTEGRITY]


def joined(values: list[Any]) -> str:
    """A list in one line."""
    return ", ".join(str(value) for value in values) or "none"


_INTEGRITY: list[tuple[str, str, Callable[[Any], str], str]] = [
    ("Model", "model", str, ""),
    ("Workload", "workload", str, ""),
    ("Cluster", "cluster", str, ""),
    ("Log format", "log_format", str, ""),
    ("Step time from", "step_time_source", str, ""),
    ("Ranks", "ranks", number, ""),
    ("Nominal batch", "nominal_batch_per_rank", number, "samples a rank a step"),
    ("Realised batches", "realised_batches_per_rank", joined, "samples a rank a step"),
    ("Batches per epoch", "batches_per_epoch", number, ""),
    ("Samples per epoch", "samples_per_epoch", number, "all ranks, as realised"),
    ("Partial steps", "partial_step_fraction", percent, "fewer samples than nominal"),
    ("Type", "dtype", str, ""),
    ("Nodes", "node_list", joined, ""),
    ("Device", "device_name", str, ""),
    ("GPU memory reserved", "hbm_reserved_bytes", octets, "peak over steps and ranks"),
    ("Profiled steps left out", "profiled_steps_excluded", number, ""),
    ("Steady steps", "steady_steps", number, ""),
    ("Recipe digest", "recipe_digest", str, "BLAKE3"),
]
