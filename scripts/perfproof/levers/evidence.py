"""What the results of a loop amount to: valid runs, their order, losses, failures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from perfproof.levers.statistics import Run
from perfproof.schema.loop import LoopSpec, LoopState, Measurement, Noise, Result
from perfproof.training.trial import ids_of

NODE_LIST = "node_list"
# Runs in a row that fail, or that cannot be compared with their like: this many end the loop.
PATIENCE = 3


def valid(result: Result) -> bool:
    """Whether the run is a repetition that may be compared."""
    return result.ending == "measured" and (result.value or 0) > 0 and not result.differs


def runs(state: LoopState) -> list[Run]:
    """Valid runs on the present node set, figures as logarithms with better upwards.

    Only of trials that have all levers of the best: an accepted lever may change how much runs
    vary (a faster step waits for the host more), so what was measured without it tells no noise.
    """
    sign = 1.0 if state.spec.direction == "higher" else -1.0
    needed = set() if state.phase == "confirm" else set(ids_of(state.best))
    return [
        Run(result.measurement.trial, position, sign * math.log(result.value))
        for position, result in enumerate(state.results)
        if position >= state.nodes_since
        and valid(result)
        and result.value is not None
        and needed <= set(ids_of(result.measurement.trial))
    ]


def known_noise(state: LoopState) -> Noise | None:
    """What is known beforehand of runs like the baseline's: given, or in the catalog; or None."""
    listed = (noise for result in state.results for noise in result.known_noise)
    return state.spec.noise_prior or next(listed, None)


def next_rep(state: LoopState, trial: str) -> Measurement:
    """The trial's next repetition. Numbers are never used twice, whatever became of the run."""
    made = sum(result.measurement.trial == trial for result in state.results)
    return Measurement(trial=trial, rep=state.spec.first_rep + made)


def reference(state: LoopState) -> Measurement | None:
    """The run that the next one's integrity is held against: the newest valid one of the best."""
    for result in reversed(state.results[state.nodes_since :]):
        if valid(result) and result.measurement.trial == state.best:
            return result.measurement
    return None


def other_nodes(result: Result) -> bool:
    """Whether the node set is all that differs."""
    return bool(result.differs) and all(line.startswith(f"{NODE_LIST}:") for line in result.differs)


def in_a_row(results: Sequence[Result], ending: str) -> int:
    """How many of the newest results ended so."""
    count = 0
    for result in reversed(results):
        if result.ending != ending:
            break
        count += 1
    return count


def same_failures(results: Iterable[Result], trial: str) -> int:
    """How often the trial has failed in the way it failed last."""
    causes = [r.cause for r in results if r.measurement.trial == trial and r.ending == "failed"]
    return causes.count(causes[-1]) if causes else 0


def unseen(result: Result, lever: str) -> list[str]:
    """What the lever should have shown in the run and did not."""
    mine = (finding for finding in result.proof if finding.lever == lever)
    return [finding.what for finding in mine if not finding.seen]


def loss_is_bad(state: LoopState, result: Result, changes_numerics: bool) -> str | None:
    """Why the loss speaks against the run; None where it does not, or none is printed.

    The band is that of the valid runs of all trials accepted so far; a lower loss is no fault.
    """
    if result.non_finite_count:
        return f"{result.non_finite_count} non-finite losses"
    known = [
        r.final_loss for r in state.results if valid(r) and r.measurement.trial in _path(state)
    ]
    losses = [loss for loss in known if loss is not None]
    if result.final_loss is None or not losses:
        return None
    decision = state.spec.decision
    share = decision.loss_tolerance_numerics if changes_numerics else decision.loss_tolerance
    # The band of the repetitions, widened by its own width and by the tolerated share.
    low, high = min(losses), max(losses)
    bound = high + (high - low) + share * abs(high)
    if result.final_loss > bound:
        return (
            f"final loss {result.final_loss:.6g} above {bound:.6g} (baseline's band and tolerance)"
        )
    return None


def _path(state: LoopState) -> set[str]:
    accepted = {record.trial for record in state.levers if record.status == "accepted"}
    return {state.spec.start, state.best} | {trial for trial in accepted if trial}


def share_of_errors(spec: LoopSpec, ineligible: Iterable[str]) -> int:
    """Number of levers that may be accepted, and so share the error budget."""
    out = set(ineligible)
    may = [c for c in spec.levers if c.kind == "lever" and not c.not_eligible and c.id not in out]
    return max(1, len(may))
