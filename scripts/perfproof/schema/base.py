"""What all records share: no unknown keys, and no null without a reason."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Strict(BaseModel):
    """A model that refuses unknown keys and non-finite numbers."""

    model_config = ConfigDict(
        extra="forbid", populate_by_name=True, allow_inf_nan=False, use_enum_values=False
    )


class Reason(StrEnum):
    """Why a number is null. The vocabulary is closed; `docs/reasons.md` lists it."""

    NO_LOG = "no_log"
    NO_MANIFEST = "no_manifest"
    NO_TRACE = "no_trace"
    NO_TELEMETRY = "no_telemetry"
    UNREADABLE = "unreadable"
    NO_STEP_LINES = "no_step_lines"
    NO_STEADY_STEP = "no_steady_step"
    NO_STEP_TIMES_IN_LOG = "no_step_times_in_log"
    ONLY_PROFILED = "only_profiled"
    NO_EPOCH_LINES = "no_epoch_lines"
    BATCH_UNKNOWN = "batch_unknown"
    RANKS_UNKNOWN = "ranks_unknown"
    NOT_PRINTED = "not_printed_by_trainer"
    NO_DEVICE = "no_device"
    DEVICE_CAPACITY_UNKNOWN = "device_capacity_unknown"
    NO_LOSS_LINES = "no_loss_lines"
    NON_FINITE = "non_finite"
    TOO_FEW_VALUES = "too_few_values"
    NOT_RECORDED = "not_recorded"
    NOT_APPLICABLE = "not_applicable"
    NO_SHARE = "no_share_of_its_own"
    NO_REMEDY = "no_remedy"
    RUN_INCOMPLETE = "run_incomplete"
    DISAGREES = "sources_disagree"
    COUNTER_RESET = "counter_reset"


REASON_MEANING: dict[Reason, str] = {
    Reason.NO_LOG: "the run left no training log",
    Reason.NO_MANIFEST: "the run left no manifest (recorded outside this workflow)",
    Reason.NO_TRACE: "the run left no profiler trace",
    Reason.NO_TELEMETRY: "the run left no telemetry",
    Reason.UNREADABLE: "the source file exists but cannot be read",
    Reason.NO_STEP_LINES: "the log has no line about a training step: never reached training",
    Reason.NO_STEADY_STEP: "the log has steps, but none after warm-up",
    Reason.NO_STEP_TIMES_IN_LOG: "this log format does not print the time of a step",
    Reason.ONLY_PROFILED: "every remaining step or epoch ran under the profiler",
    Reason.NO_EPOCH_LINES: "the log has no line that closes an epoch",
    Reason.BATCH_UNKNOWN: "neither log nor configuration says how many samples a step takes",
    Reason.RANKS_UNKNOWN: "neither log nor manifest says how many ranks ran",
    Reason.NOT_PRINTED: "the trainer does not print it in this configuration",
    Reason.NO_DEVICE: "the run used no GPU",
    Reason.DEVICE_CAPACITY_UNKNOWN: "no device record says how much memory the GPU has",
    Reason.NO_LOSS_LINES: "the log prints no loss",
    Reason.NON_FINITE: "the value is NaN or infinite",
    Reason.TOO_FEW_VALUES: "too few values for this statistic",
    Reason.NOT_RECORDED: "the run did not record it",
    Reason.NOT_APPLICABLE: "the question makes no sense for this run",
    Reason.NO_SHARE: "it explains other claims; a share of its own would count time twice",
    Reason.NO_REMEDY: "it states a limit; there is nothing to try",
    Reason.RUN_INCOMPLETE: "the run has not ended or ended before it was known",
    Reason.DISAGREES: "two sources give different values",
    Reason.COUNTER_RESET: "the counter went backwards within the window",
}


class Reasoned(Strict):
    """A record whose null fields each carry a reason: `reasons` maps field name to `Reason`."""

    reasons: dict[str, Reason] = Field(
        default_factory=dict, description="why each null field is null"
    )

    @model_validator(mode="after")
    def _null_needs_reason(self) -> Self:
        names = [name for name in type(self).model_fields if name != "reasons"]
        nulls = {name for name in names if getattr(self, name) is None}
        missing, stray = sorted(nulls - self.reasons.keys()), sorted(self.reasons.keys() - nulls)
        if missing:
            raise ValueError(f"null without a reason: {', '.join(missing)}")
        if stray:
            raise ValueError(f"reason for a value that is there: {', '.join(stray)}")
        return self


class Problem(Strict):
    """Something about the input that a reader must know: where, and what, in one line each."""

    where: str = Field(description="file, relative to the run directory")
    what: str = Field(description="what was found and what was expected")
