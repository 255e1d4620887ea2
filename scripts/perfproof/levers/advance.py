"""One step of a loop: what the last step asked for, as it went, and what to do next."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfproof.cluster import utc
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.levers.files import EXPLORING, run_dir
from perfproof.levers.observe import observe
from perfproof.levers.policy import advance, begin, confirm
from perfproof.levers.story.status import append
from perfproof.schema.loop import LoopSpec, LoopState


def next_state(
    previous: Path, exploring: bool, step: int, results: Path, levers: Path
) -> LoopState:
    """The state after `previous`: the loop's definition, or a step of it.

    Step 0 begins, of exploring from the definition, of the confirmation from the last step.
    """
    if step == 0 and exploring:
        return begin(read_record(previous, LoopSpec))
    state = read_record(previous, LoopState)
    if step == 0:
        return confirm(state)
    (asked,) = state.action.measure
    against = state.action.against
    result = observe(
        run_dir(results, state.spec, asked),
        asked,
        state.spec,
        levers,
        run_dir(results, state.spec, against) if against else None,
        with_claims=state.action.with_claims,
    )
    return advance(state, result)


def main() -> None:
    """`python -m perfproof.levers.advance`."""
    cli = parser("Make one step of an optimizer loop.")
    cli.add_argument("--previous", type=Path, required=True, help="loop.json, or the step before")
    cli.add_argument("--chain", required=True, help="`steps`, or the confirmation's folder")
    cli.add_argument("--step", type=int, required=True, help="number of the step to make")
    cli.add_argument("--results", type=Path, default=Path("results"), help="where runs lie")
    cli.add_argument("--levers", type=Path, required=True, help="the model's catalog")
    cli.add_argument("--status", type=Path, required=True, help="STATUS.txt to append to")
    cli.add_argument("--out", type=Path, required=True, help="the step's file")
    run(_step, cli.parse_args())


def _step(arguments: argparse.Namespace) -> Status:
    state = next_state(
        arguments.previous,
        arguments.chain == EXPLORING,
        arguments.step,
        arguments.results,
        arguments.levers,
    )
    step = f"{arguments.chain}/{arguments.step}"
    append(arguments.status, state.events, utc.now(), step)
    write_record(arguments.out, state)
    what = ", ".join(f"{m.trial} rep {m.rep}" for m in state.action.measure)
    return Status("ok", f"step {state.step}: {state.action.kind} {what}: {state.action.why}")


if __name__ == "__main__":
    main()
