from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.training.collectors.loading import load, load_file
from perfproof.training.collectors.reading import Reading, card
from perfproof.training.collectors.samples import SampleFile


def tick(*watts: float) -> list[Reading]:
    return [("power", card(number), value) for number, value in enumerate(watts)]


def written(folder: Path, node: str, *ticks: tuple[int, list[Reading]]) -> Path:
    out = SampleFile(folder / f"samples-{node}.jsonl", {"instance": node})
    for time_ms, readings in ticks:
        out.append(time_ms, readings)
    out.close()
    return folder / f"samples-{node}.jsonl"


def test_ticks_read_back_as_series(tmp_path: Path) -> None:
    path = written(tmp_path, "a1", (1000, tick(1.5, 2)), (2000, tick(3, 4)))
    found = load_file(path)
    assert [(s.metric, list(s.times_ms), list(s.values)) for s in found.series] == [
        ({"__name__": "power", "card": "0", "instance": "a1"}, [1000, 2000], [1.5, 3]),
        ({"__name__": "power", "card": "1", "instance": "a1"}, [1000, 2000], [2, 4]),
    ]
    assert found.problems == []


def test_names_are_written_once(tmp_path: Path) -> None:
    path = written(tmp_path, "a1", *((n, tick(1, 2)) for n in range(50)))
    assert path.read_text().count("power") == 2


def test_a_card_that_vanishes_ends_its_series(tmp_path: Path) -> None:
    path = written(tmp_path, "a1", (1, tick(1, 2)), (2, tick(1)), (3, tick(1, 2)))
    by_card: dict[str, list[int]] = {"0": [], "1": []}
    for series in load_file(path).series:
        by_card[series.metric["card"]] += series.times_ms
    assert by_card == {"0": [1, 2, 3], "1": [1, 3]}


def test_half_a_line_is_what_a_kill_leaves(tmp_path: Path) -> None:
    path = written(tmp_path, "a1", (1, tick(1)), (2, tick(2)))
    path.write_bytes(path.read_bytes()[:-3])
    found = load_file(path)
    assert list(found.series[0].times_ms) == [1]
    assert found.problems == []


@pytest.mark.parametrize(
    "bad",
    ["[3]", "[3,1,2]", '["x",1]', '[3,"much"]', "{}", "not json", '{"series":[3]}', "[]", "null"],
)
def test_a_bad_line_costs_only_itself(bad: str, tmp_path: Path) -> None:
    path = written(tmp_path, "a1", (1, tick(1)))
    with path.open("a") as stream:
        stream.write(f"{bad}\n[4,9]\n")
    found = load_file(path)
    assert list(found.series[0].times_ms) == [1, 4]
    assert found.problems == [
        "samples-a1.jsonl: line 3 left out; expected [time_ms, value, …] under its series"
    ]


def test_nodes_are_counted_by_their_ticks(tmp_path: Path) -> None:
    written(tmp_path, "a1", (1, tick(1, 2)), (2, tick(1, 2)))
    written(tmp_path, "a2", (1, tick(1)))
    assert load(tmp_path).ticks() == {"a1": 2, "a2": 1}
