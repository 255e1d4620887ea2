"""`foms.csv`: one row a run, nothing that a spreadsheet computes."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from perfproof.levers.story.record import Loop, rows
from perfproof.levers.story.table import COLUMNS, safe, table


def _read(loop: Loop) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table(loop))))


def test_one_row_a_run_with_its_figures(rich: Loop) -> None:
    found, made = _read(rich), rows(rich)
    assert len(found) == len(made) == len(rich.last.results)
    assert tuple(found[0]) == COLUMNS
    for cells, row in zip(found, made, strict=True):
        value = row.result.value
        assert cells["value"] == ("" if value is None else repr(value))
        assert (cells["role"], cells["lever"]) == (row.role, row.lever or "")
        if value is None:
            assert "value: not_recorded" in cells["null_because"]


def test_integrity_and_proof_are_told(rich: Loop) -> None:
    by_lever = {cells["lever"]: cells for cells in _read(rich)}
    assert by_lever["wider"]["differs"] == "realised_batches_per_rank: a 8, b 4"
    assert by_lever["silent"]["proof_seen"] == "no"
    assert by_lever["slow"]["proof_seen"] == "yes"
    assert by_lever["broken"]["ending"] == "failed"
    assert by_lever["diverging"]["final_loss"] == "5.5"


def test_hostile_text_stays_in_its_cell(rich: Loop) -> None:
    lost = [cells for cells in _read(rich) if cells["ending"] == "infrastructure"]
    assert len(lost) == 2
    assert all("\n" not in cells["cause"] for cells in lost)
    assert len(table(rich).splitlines()) == len(rich.last.results) + 1


@given(st.text())
def test_no_text_is_a_formula(text: str) -> None:
    cell = safe(text)
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))
    assert len(cell.splitlines()) <= 1
