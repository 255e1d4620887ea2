"""Numbers of the telemetry summary that could become claims, before any threshold."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from perfproof.claims.candidates import Candidate
from perfproof.claims.metrics import METRICS
from perfproof.claims.vocabulary import ShareRule
from perfproof.schema.claims import Evidence
from perfproof.schema.telemetry import EntityReading, GpuTelemetry, TelemetrySummary

SUMMARY = "telemetry_summary.json"
_IN_USE = 0.01
_QUANTITIES = (
    ("utilization", "utilization_mean_percent", "mean utilization"),
    ("power", "power_mean_w", "mean power"),
    ("core_clock", "sm_clock_mean_mhz", "mean clock"),
)


def in_use(gpus: list[GpuTelemetry]) -> list[GpuTelemetry]:
    """Without GPUs that ran nothing while others did: the sampler sees all GPUs of the host."""
    return [gpu for gpu in gpus if gpu.utilization_mean_percent] or gpus


def of_gpu(gpu: GpuTelemetry, capacity: int | None, window: str) -> Iterator[Candidate]:
    """Each known number of one GPU as a fraction, with its place and its words.

    Means over a whole run hold its start-up: they say nothing about steps and are left out.
    """
    over = f"over {gpu.samples} samples of the steady window"
    used = gpu.memory_used_max_bytes
    filled = used / capacity if used and capacity else None
    for metric, field, value, what in (
        ("gpu_utilization_mean", "utilization_mean_percent", _part(gpu.utilization_mean_percent),
         f"is the mean share of time with a kernel running, {over}"),
        ("memory_busy_mean", "memory_busy_mean_percent", _part(gpu.memory_busy_mean_percent),
         f"is the mean share of time with device memory busy, {over}"),
        ("power_throttle_fraction", "power_throttle_fraction", gpu.power_throttle_fraction,
         "are held down by the power cap"),
        ("thermal_throttle_fraction", "thermal_throttle_fraction", gpu.thermal_throttle_fraction,
         "are held down by temperature"),
        ("hbm_used_fraction", "memory_used_max_bytes", filled,
         f"of device memory is the largest use, {over}"),
    ):  # fmt: skip
        if value is not None and (window == "steps" or not metric.endswith("_mean")):
            of = "of the steady samples " if what.startswith("are") else ""
            complement = METRICS[metric].share is ShareRule.COMPLEMENT
            share = min(max(1 - value, 0.0), 1.0) if complement else None
            yield _on_gpu(gpu, metric, value, share, what, field, of)


def _part(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _on_gpu(
    gpu: GpuTelemetry,
    metric: str,
    value: float,
    share: float | None,
    what: str,
    field: str,
    of: str = "",
    **params: str,
) -> Candidate:
    where = f"gpus with gpu={gpu.gpu}, {field}"
    named: dict[str, int | str] = {"gpu": gpu.gpu, **params}
    place = None
    if gpu.instance:
        named["instance"] = gpu.instance
        where = f"gpus with instance={gpu.instance} and gpu={gpu.gpu}, {field}"
        place = ("GPU", f"{gpu.gpu} of node {gpu.instance}")
    evidence = [Evidence(file=SUMMARY, where=where)]
    return Candidate(metric, gpu.gpu, value, share, what, evidence, named, of, place)


def outliers(gpus: list[GpuTelemetry], window: str) -> Iterator[Candidate]:
    """Each card against the median of the cards in use."""
    if window != "steps":
        return
    for quantity, field, words in _QUANTITIES:
        known = [(gpu, value) for gpu in gpus if (value := getattr(gpu, field)) is not None]
        median = statistics.median(value for _, value in known) if len(known) > 1 else 0.0
        if median <= 0:
            continue
        for gpu, value in known:
            what = f"is how far its {words} lies below the median of the cards"
            yield _on_gpu(gpu, "card_below_median_fraction", 1 - value / median, None, what,
                          field, quantity=quantity)  # fmt: skip


def of_links(summary: TelemetrySummary) -> Iterator[Candidate]:
    """Links of cards and network interfaces against their like."""
    for direction in ("read", "write"):
        for one, value in _below(summary, f"link_{direction}_average", 0.0):
            gpu = int(one.part)
            params: dict[str, int | str] = {"gpu": gpu, "direction": direction}
            params |= {"instance": one.instance} if one.instance else {}
            what = f"is how far its {direction} rate over links lies below the median of the cards"
            place = ("GPU", f"{one.part} of node {one.instance}" if one.instance else one.part)
            yield _other("link_below_median_fraction", gpu, value, what,
                         f"link_{direction}_average", one, params, place)  # fmt: skip
    for direction in ("send", "receive"):
        for one, value in _below(summary, f"network_{direction}_average", _IN_USE):
            params = {"instance": one.instance, "interface": one.part, "direction": direction}
            what = f"is how far its {direction} rate lies below the median of the interfaces"
            yield _other("interface_below_median_fraction", 0, value, what,
                         f"network_{direction}_average", one, params,
                         ("interface", f"{one.part} of node {one.instance}"))  # fmt: skip


def _below(
    summary: TelemetrySummary, figure: str, least: float
) -> Iterator[tuple[EntityReading, float]]:
    """Readings with how far each lies below the median; `least`: in use, of the largest one."""
    known = [
        (one, one.value)
        for one in readings(summary, figure)
        if one.value is not None and (one.part.isdecimal() or not figure.startswith("link"))
    ]
    largest = max((value for _, value in known), default=0.0)
    used = [(one, value) for one, value in known if value > least * largest]
    median = statistics.median(value for _, value in used) if len(used) > 1 else 0.0
    if median > 0:
        yield from ((one, 1 - value / median) for one, value in used)


def of_hosts(summary: TelemetrySummary) -> Iterator[Candidate]:
    """Processor and memory of each node."""
    for metric, part, whole, what in (
        ("host_cpu_busy_fraction", "host_cpu_busy", "host_cpu_cores",
         "of the processor cores are busy on average"),
        ("host_memory_used_fraction", "host_memory_used", "host_memory_total",
         "of memory is in use on average"),
    ):  # fmt: skip
        total = {one.instance: one.value for one in readings(summary, whole)}
        for one in readings(summary, part):
            of = total.get(one.instance)
            if one.value is not None and of and summary.window_kind == "steps":
                yield _other(metric, 0, one.value / of, what, part, one,
                             {"instance": one.instance}, ("node", one.instance))  # fmt: skip


def readings(summary: TelemetrySummary, figure: str) -> list[EntityReading]:
    """Readings of one figure; none where the summary has no such figure."""
    return next((one.readings for one in summary.figures if one.id == figure), [])


def _other(
    metric: str,
    number: int,
    value: float,
    what: str,
    figure: str,
    one: EntityReading,
    params: dict[str, int | str],
    place: tuple[str, str],
) -> Candidate:
    where = f"figures with id={figure}, readings of {one.instance} {one.part}".rstrip()
    evidence = [Evidence(file=SUMMARY, where=where)]
    return Candidate(metric, number, value, None, what, evidence, params, "", place)
