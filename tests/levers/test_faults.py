"""One test a row of the table of faults, and the page that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfproof.cluster.states import _blame
from perfproof.levers.faults import FAULTS, LAUNCHER, NON_FINITE, Again, Ending, cause_of, fault_of
from perfproof.schema.cluster import Cause, EndState
from perfproof.schema.run import State
from tests.levers.runs import ending

FAILED = EndState.FAILED
ROWS: list[tuple[str, EndState, Cause | None, Ending, Again, bool]] = [
    ("completed", EndState.COMPLETED, None, "measured", "no", False),
    ("device_memory", FAILED, Cause.DEVICE_MEMORY, "failed", "any nodes", False),
    ("host_memory", EndState.OUT_OF_MEMORY, Cause.HOST_MEMORY, "failed", "any nodes", False),
    ("gpu_memory_fault", FAILED, Cause.GPU_MEMORY_FAULT, "failed", "any nodes", False),
    ("python_exception", FAILED, Cause.EXCEPTION, "failed", "any nodes", False),
    ("aborted", FAILED, Cause.ABORTED, "failed", "any nodes", False),
    ("segmentation_fault", FAILED, Cause.SEGMENTATION_FAULT, "failed", "any nodes", False),
    ("timeout", EndState.TIMEOUT, None, "failed", "any nodes", False),
    ("hang", EndState.TIMEOUT, Cause.HANG, "failed", "other nodes", False),
    ("collective", FAILED, Cause.COLLECTIVE, "failed", "other nodes", False),
    ("killed", FAILED, Cause.KILLED, "failed", "other nodes", False),
    ("unknown", FAILED, Cause.UNKNOWN, "failed", "other nodes", False),
    ("node_fail", EndState.NODE_FAIL, None, "infrastructure", "other nodes", False),
    ("preempted", EndState.PREEMPTED, None, "infrastructure", "any nodes", False),
    ("lost", EndState.LOST, None, "infrastructure", "any nodes", False),
    ("timeout_waiting", EndState.TIMEOUT_WAITING, None, "infrastructure", "any nodes", False),
    ("held", EndState.HELD, None, "infrastructure", "no", True),
    ("unsatisfiable", EndState.UNSATISFIABLE, None, "infrastructure", "no", True),
    ("cancelled", EndState.CANCELLED, None, "infrastructure", "no", True),
    ("disk_full", FAILED, Cause.DISK_FULL, "infrastructure", "no", True),
    ("ranks_alone", FAILED, Cause.RANKS_ALONE, "infrastructure", "no", True),
]


@pytest.mark.parametrize(("word", "state", "cause", "answers", "again", "ends_loop"), ROWS)
def test_an_ending_has_its_row(
    word: str,
    state: EndState,
    cause: Cause | None,
    answers: Ending,
    again: Again,
    ends_loop: bool,
) -> None:
    assert cause_of(State.FAILED, ending(state, cause), silent=False) == word
    row = fault_of(word)
    assert (row.ending, row.again, row.ends_loop) == (answers, again, ends_loop)


def test_a_run_whose_ranks_never_started_is_the_launchers() -> None:
    for cause in (Cause.UNKNOWN, Cause.EXCEPTION, Cause.KILLED, Cause.COLLECTIVE):
        assert cause_of(State.FAILED, ending(FAILED, cause), silent=True) == LAUNCHER
    assert cause_of(State.FAILED, None, silent=True) == LAUNCHER
    row = fault_of(LAUNCHER)
    assert (row.ending, row.again, row.ends_loop) == ("infrastructure", "other nodes", False)


@pytest.mark.parametrize("cause", [Cause.DISK_FULL, Cause.DEVICE_MEMORY, Cause.ABORTED])
def test_a_cause_that_is_known_stays_one_where_ranks_are_silent(cause: Cause) -> None:
    assert cause_of(State.FAILED, ending(FAILED, cause), silent=True) == cause


def test_a_loss_that_is_no_number_is_a_measurement_nobody_repeats() -> None:
    row = fault_of(NON_FINITE)
    assert (row.ending, row.again, row.ends_loop) == ("measured", "no", False)


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (State.COMPLETED, "completed"),
        (State.FAILED, "unknown"),
        (State.TIMEOUT, "timeout"),
        (State.NODE_FAULT, "node_fail"),
        (State.CANCELLED, "cancelled"),
        (State.RUNNING, "lost"),
    ],
)
def test_without_an_ending_the_manifest_tells(state: State, word: str) -> None:
    assert cause_of(state, None, silent=False) == word


def test_every_ending_and_cause_has_a_row_and_every_row_a_test() -> None:
    words = {*EndState, *Cause} - {EndState.FAILED, EndState.OUT_OF_MEMORY}
    assert set(FAULTS) == {word.value for word in words} | {LAUNCHER, NON_FINITE}
    assert set(FAULTS) == {row[0] for row in ROWS} | {LAUNCHER, NON_FINITE}
    assert fault_of("a word of tomorrow") is FAULTS[Cause.UNKNOWN]


@pytest.mark.parametrize(("word", "state", "cause"), [row[:3] for row in ROWS])
def test_the_table_agrees_with_who_is_to_blame(
    word: str, state: EndState, cause: Cause | None
) -> None:
    blame = {"none": "measured", "run": "failed", "infrastructure": "infrastructure"}
    who = _blame(state, cause)
    assert who == "unknown" or fault_of(word).ending == blame[who]


def test_the_page_shows_the_table(root: Path) -> None:
    page = (root / "docs" / "levers.md").read_text(encoding="utf-8")
    section = page.partition("## Faults")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \| (.+) \| (.+) \|$", section, re.M)
    assert shown == [
        (word, row.meaning, row.counts, row.again, "yes" if row.ends_loop else "no")
        for word, row in ((str(word), row) for word, row in FAULTS.items())
    ]
