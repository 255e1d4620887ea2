"""Limits that come from the run, its log and its telemetry."""

from __future__ import annotations

from perfproof.report.facts import FEW_STEPS, Facts
from perfproof.report.units import quantity
from perfproof.schema.base import REASON_MEANING
from perfproof.schema.foms import LossVerdict, Method


def one_run(_: Facts) -> str | None:
    """A report is about one run: spread between runs is not in it."""
    return (
        "One run only: its spread from run to run is unknown, so no difference from another run "
        "can be called real on this page alone."
    )


def nodes(facts: Facts) -> str | None:
    """Conclusions hold for the nodes they were measured on."""
    found = facts.card.node_list
    if not found:
        return "The node list is unknown: conclusions cannot be tied to hardware."
    if len(found) > 1:
        return None
    return f"One node ({found[0]}): nothing here tells how the run would scale out."


def no_manifest(facts: Facts) -> str | None:
    """Recorded outside the workflow."""
    if facts.card.recipe_digest is not None:
        return None
    return "The recipe is not recorded: two such runs may differ in ways this page cannot see."


def no_steady_steps(facts: Facts) -> str | None:
    """Without step times nothing can be said per step outside the profiler."""
    if facts.foms.step_time_s is None:
        why = REASON_MEANING[facts.foms.reasons["step_time_s"]]
        return f"Unprofiled step time is unknown: {why}."
    return None


def few_steps(facts: Facts) -> str | None:
    """Percentiles of a handful of steps are those steps."""
    spread = facts.foms.step_time_s
    if spread is None or spread.n >= FEW_STEPS:
        return None
    return f"Only {spread.n} steady steps: their percentiles say little about rare slow steps."


def nominal_batch(facts: Facts) -> str | None:
    """The nominal batch is what was asked for."""
    if facts.foms.throughput_method is not Method.NOMINAL_BATCH:
        return None
    return (
        "Throughput assumes the nominal batch on every step: smaller batches, which loader "
        "workers can cause, would make it too high."
    )


def short_loss(facts: Facts) -> str | None:
    """Speed says nothing about learning."""
    if facts.foms.loss_verdict not in {LossVerdict.TOO_SHORT, LossVerdict.UNKNOWN}:
        return None
    return "The loss curve is too short or absent: whether the run learns cannot be told."


def no_telemetry(facts: Facts) -> str | None:
    """Power, clocks and temperature come from telemetry alone."""
    if facts.has_samples:
        return None
    why = "No telemetry"
    if facts.telemetry.file is not None:
        why = "Telemetry holds no sample of the steady steps"
    return f"{why}: power, clocks, temperature and throttling are unknown."


def coarse_telemetry(facts: Facts) -> str | None:
    """A sampler slower than a step sees averages over steps."""
    interval, spread = facts.telemetry.sampling_interval_s, facts.foms.step_time_s
    if interval is None or spread is None or not facts.has_samples or interval < spread.median:
        return None
    return (
        f"Telemetry samples every {quantity(interval, 's')}, longer than a step: it shows "
        "averages over steps, never what happens inside one."
    )
