"""Play a policy over recorded runs, launch nothing, say which runs it would have needed besides.

The recorded policy gives the recorded steps again, byte for byte. Another one takes each run that
it asks for from the recorded ones, by trial and repetition, and ends where one does not exist.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from perfproof.core.errors import InputError, unknown
from perfproof.core.files import canonical_json, read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.levers import policy
from perfproof.levers.evidence import NODE_LIST
from perfproof.levers.story.record import Loop, read_loop
from perfproof.levers.story.write import write_all
from perfproof.schema.base import Reason
from perfproof.schema.decisions import Compared, MissingRun, Replay
from perfproof.schema.loop import Candidate, Decision, LoopSpec, LoopState, Measurement, Result

Key = tuple[str, int]
Chain = Literal["steps", "confirm"]
NOT_ASKED = "not among the levers that were asked for"


@dataclass(frozen=True)
class Played:
    """A chain of steps, and the run that it lacked to go on."""

    states: list[LoopState]
    missing: MissingRun | None

    @property
    def last(self) -> LoopState:
        """Where it ended."""
        return self.states[-1]


def play(start: LoopState, pool: dict[Key, Result], chain: Chain, until: str | None) -> Played:
    """Go from `start` as far as the runs of `pool` lead, or to the state whose digest is `until`.

    `until` is where a recorded chain was ended from outside, by a budget or a STOP file.
    """
    states = [start]
    while states[-1].action.kind != "stop" and text(states[-1]) != until:
        state = states[-1]
        (asked,) = state.action.measure
        found = pool.get((asked.trial, asked.rep))
        if found is None:
            why = state.action.why
            lacking = MissingRun(
                trial=asked.trial, rep=asked.rep, chain=chain, step=state.step, why=why
            )
            return Played(states, lacking)
        states.append(policy.advance(state, as_observed(found, _against(state))))
    return Played(states, None)


def text(state: LoopState) -> str:
    """The step file of a state."""
    return canonical_json(state.model_dump(mode="json", by_alias=True))


def _against(state: LoopState) -> Result | None:
    """The run that the next one's integrity is held against."""
    asked = state.action.against
    return next((r for r in state.results if r.measurement == asked), None) if asked else None


def as_observed(result: Result, against: Result | None) -> Result:
    """The result as the policy was first told it.

    A step file drops a difference in nodes that it took note of, and another policy may hold the
    run against one on other nodes: that difference follows from the node lists.
    """
    if result.ending != "measured" or against is None:
        return result
    elsewhere = _nodes(result) != _nodes(against)
    said = [line for line in result.differs if line.startswith(f"{NODE_LIST}:")]
    if elsewhere == bool(said):
        return result
    rest = [line for line in result.differs if line not in said]
    line = f"{NODE_LIST}: a {_shown(against.node_list)}, b {_shown(result.node_list)}"
    return result.model_copy(update={"differs": [*rest, line] if elsewhere else rest})


def _nodes(result: Result) -> set[str] | None:
    return None if result.node_list is None else set(result.node_list)


def _shown(nodes: list[str] | None) -> str:
    """As a comparison of two runs writes it."""
    return "null" if nodes is None else ",".join(nodes) or "none"


def replay(
    recorded: Loop,
    decision: Decision,
    only: Iterable[str] = (),
    later: Iterable[Result] = (),
) -> tuple[Played, Played | None]:
    """Explore with another decision, or some of the levers; confirm if the recorded loop did.

    `later` are runs of steps that were made after the recorded ending.
    """
    spec = another(recorded.explored.spec, decision, list(only))
    pool = {_key(result.measurement): result for result in [*later, *recorded.last.results]}
    until = text(recorded.explored)
    explored = play(policy.begin(spec), pool, "steps", until)
    if explored.missing or recorded.confirmed is None:
        return explored, None
    start = policy.confirm(explored.last)
    return explored, play(start, pool, "confirm", text(recorded.confirmed))


def _key(measurement: Measurement) -> Key:
    return measurement.trial, measurement.rep


def another(spec: LoopSpec, decision: Decision, only: Sequence[str]) -> LoopSpec:
    """The loop's definition with another decision rule, and `only` some levers (none: all)."""
    known = [candidate.id for candidate in spec.levers]
    for name in only:
        if name not in known:
            raise unknown("--only", "lever", name, known)
    levers = [_asked(candidate, only) for candidate in spec.levers]
    return spec.model_copy(update={"decision": decision, "levers": levers})


def _asked(candidate: Candidate, only: Sequence[str]) -> Candidate:
    if not only or candidate.id in only:
        return candidate
    return candidate.model_copy(update={"not_eligible": NOT_ASKED})


def told(
    recorded: Loop, explored: Played, confirmed: Played | None, differing: str | None
) -> Replay:
    """What the replay found, held against the recorded loop."""
    before, after = recorded.explored, explored.last
    chains = [explored, *([confirmed] if confirmed else [])]
    used = {_key(result.measurement) for result in chains[-1].last.results}
    runs = [result.measurement for result in recorded.last.results]
    statuses = {record.id: record.status for record in after.levers}
    return Replay(
        decision=after.spec.decision,
        recorded_decision=before.spec.decision,
        same_policy=after.spec == before.spec,
        levers=[
            Compared(
                lever=record.id,
                recorded=record.status,
                replayed=statuses[record.id],
                same=record.status == statuses[record.id],
            )
            for record in before.levers
        ],
        recorded_best=before.best,
        best=after.best,
        recorded_steps=before.step,
        steps=after.step,
        missing=[chain.missing for chain in chains if chain.missing],
        used=len(used),
        unused=[measurement for measurement in runs if _key(measurement) not in used],
        differing_step=differing,
        reasons={} if differing else {"differing_step": Reason.NOT_APPLICABLE},
    )


def steps_of(path: Path) -> list[Path]:
    """The step files of a chain in order: of a loop's or a chain's directory, or one file."""
    if not path.is_dir():
        return [path]
    folder = path / "steps" if (path / "steps").is_dir() else path
    found = [file for file in folder.iterdir() if re.fullmatch(r"\d+\.json", file.name)]
    if not found:
        raise InputError(path, "no step file", "a loop's directory with steps/<number>.json")
    return sorted(found, key=lambda file: int(file.stem))


def confirmed_ones(steps: list[Path], confirmed: Path) -> list[Path]:
    """The steps after which a confirmation began: a budget may have been raised since."""
    state = read_record(confirmed, LoopState)
    # Each step of a chain takes in one run.
    began = len(state.results) - state.step
    return [file for file in steps if int(file.stem) <= began] or steps


def first_difference(files: Sequence[Path], states: Sequence[LoopState]) -> Iterator[str]:
    """Recorded step files that the replayed chain makes otherwise, by name."""
    by_step = {state.step: state for state in states}
    for file in files:
        step = read_record(file, LoopState).step
        made = by_step.get(step)
        if made is None or file.read_text(encoding="utf-8") != text(made):
            yield f"{file.parent.name}/{file.name}"


def main() -> None:
    """`python -m perfproof.levers.replay`."""
    cli = parser("Replay a recorded loop with another policy; nothing is launched.")
    cli.add_argument(
        "--loop", type=Path, required=True, help="the loop's directory, or its last step's file"
    )
    cli.add_argument(
        "--confirm", type=Path, help="the confirmation's directory, or its last step's file"
    )
    cli.add_argument(
        "--decision", default="{}", help="keys of `decision:` to change, JSON; {}: as recorded"
    )
    cli.add_argument("--only", nargs="*", default=[], help="levers to try; none: as recorded")
    cli.add_argument("--levers", type=Path, help="the model's catalog: it says what levers change")
    cli.add_argument("--out-dir", type=Path, required=True, help="directory to write to")
    run(_step, cli.parse_args())


def _step(arguments: argparse.Namespace) -> Status:
    steps = steps_of(arguments.loop)
    confirmation = steps_of(arguments.confirm) if arguments.confirm else []
    newest, last = steps[-1], confirmation[-1] if confirmation else None
    if last and arguments.loop.is_dir():
        steps = confirmed_ones(steps, last)
    recorded = read_loop(steps[-1], last, "recorded", arguments.levers)
    later = read_record(newest, LoopState).results
    decision = changed(recorded.explored.spec.decision, arguments.decision)
    explored, confirmed = replay(recorded, decision, arguments.only, later)
    differing = first_difference(steps, explored.states)
    then = first_difference(confirmation, confirmed.states if confirmed else [])
    found = told(recorded, explored, confirmed, next(differing, None) or next(then, None))
    write_record(arguments.out_dir / "replay.json", found)
    ending = "missing" if found.missing else "replayed"
    replayed = Loop(explored.last, confirmed.last if confirmed else None, ending, recorded.catalog)
    verdict = write_all(replayed, arguments.out_dir)
    return Status("ok", f"{_summary(found)}; {verdict}")


def changed(decision: Decision, keys: str) -> Decision:
    """The recorded decision rule with some keys (JSON) changed."""
    try:
        given = Decision.model_validate_json(keys)
    except ValidationError as fault:
        first = fault.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError("--decision", first["msg"], "keys of `decision:` as JSON", key) from None
    return decision.model_copy(update=given.model_dump(include=given.model_fields_set))


def _summary(found: Replay) -> str:
    if found.missing:
        lacking = found.missing[0]
        return f"step {lacking.step} of {lacking.chain} needs {lacking.trial} rep {lacking.rep}"
    same = sum(lever.same for lever in found.levers)
    return f"{same} of {len(found.levers)} levers are decided as recorded"


if __name__ == "__main__":
    main()
