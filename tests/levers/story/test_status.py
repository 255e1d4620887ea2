"""`STATUS.txt`: appended to, once for each step, also by several writers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path

import pytest

from perfproof.levers.story.status import append
from tests.levers.story.loops import Truth, play, spec

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def test_one_line_an_event_with_utc_time(tmp_path: Path) -> None:
    path = tmp_path / "loop" / "STATUS.txt"
    east = NOW.astimezone(timezone(timedelta(hours=5)))
    append(path, ["LOOP_START model=orbit2", 'DECISION lever=a why="no gain"'], east)
    assert path.read_text().splitlines() == [
        "2026-01-31T12:00:00Z LOOP_START model=orbit2",
        '2026-01-31T12:00:00Z DECISION lever=a why="no gain"',
    ]


def test_a_step_that_is_made_again_is_not_told_again(tmp_path: Path) -> None:
    path = tmp_path / "STATUS.txt"
    first, second = ["RUN_DONE trial=a rep=0", "DECISION lever=a"], ["RUN_DONE trial=b rep=0"]
    append(path, first, NOW)
    append(path, second, NOW)
    before = path.read_bytes()
    append(path, first, LATER)
    append(path, second, LATER)
    append(path, [], LATER)
    assert path.read_bytes() == before


def test_the_same_words_in_another_step_are_another_event(tmp_path: Path) -> None:
    path = tmp_path / "STATUS.txt"
    steps = [
        ["RUN_DONE trial=a rep=0", "NODES_CHANGED nodes=x"],
        ["RUN_DONE trial=a rep=1", "NODES_CHANGED nodes=x"],
    ]
    for step in steps:
        append(path, step, NOW)
    assert path.read_text().count("NODES_CHANGED nodes=x") == 2


def test_two_chains_may_be_told_of_one_run(tmp_path: Path) -> None:
    path = tmp_path / "STATUS.txt"
    event = "RUN_DONE trial=baseline rep=5"
    for step in ("runs-20/confirm/1", "steps/12", "steps/12"):
        append(path, [event], NOW, step)
    assert [line.split(" ", 2)[2] for line in path.read_text().splitlines()] == [
        "step=runs-20/confirm/1 trial=baseline rep=5",
        "step=steps/12 trial=baseline rep=5",
    ]


@pytest.mark.parametrize("kept", [1, 2])
def test_a_step_written_in_part_is_completed(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "STATUS.txt"
    events = ["RUN_DONE trial=a rep=0", "DECISION lever=a", "LEVER_PICK lever=b"]
    append(path, ["LOOP_START model=m"], NOW)
    append(path, events[:kept], NOW)
    append(path, events, LATER)
    assert [line.split(" ", 1)[1] for line in path.read_text().splitlines()] == [
        "LOOP_START model=m",
        *events,
    ]


def test_a_torn_line_stays_apart(tmp_path: Path) -> None:
    path = tmp_path / "STATUS.txt"
    path.write_text("2026-01-31T12:00:00Z RUN_DO")
    append(path, ["RUN_DONE trial=a rep=0"], NOW)
    assert path.read_text().splitlines()[1] == "2026-01-31T12:00:00Z RUN_DONE trial=a rep=0"


def test_no_event_can_forge_a_line(tmp_path: Path) -> None:
    path = tmp_path / "STATUS.txt"
    hostile = "DECISION why=a\n2026 LOOP_STOP\r\x1b[2J\u2028x\u202e\ud800"
    append(path, [hostile], NOW)
    append(path, [hostile], LATER)
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert line.startswith("2026-01-31T12:00:00Z DECISION why=a 2026 LOOP_STOP")
    assert not re.search(r"[\x00-\x1f\u2028\u202e]", line)


def _write(path: Path, name: str) -> None:
    for number in range(30):
        append(path, [f"RUN_DONE trial={name} rep={number}", f"DECISION lever={name}"], NOW)


def test_blocks_of_several_writers_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "STATUS.txt"
    context = get_context("fork")
    writers = [context.Process(target=_write, args=(path, name)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = [line.split(" ", 1)[1] for line in path.read_text().splitlines()]
    assert len(lines) == 180
    for done, decided in zip(lines[::2], lines[1::2], strict=True):
        assert done.split("trial=")[1][0] == decided[-1]


def test_a_whole_loop_told_twice_is_told_once(tmp_path: Path) -> None:
    truth = Truth({"a": 0.1, "b": 0.0})
    explored, confirmed = play(truth, spec(truth))
    path = tmp_path / "STATUS.txt"
    for now in (NOW, LATER):
        for state in [*explored, *confirmed]:
            append(path, state.events, now)
    lines = path.read_text().splitlines()
    assert len(lines) == sum(len(state.events) for state in [*explored, *confirmed])
    assert all(line.startswith("2026-01-31T12:00:00Z ") for line in lines)
