"""The registry: dimensions hold, templates are what they should be, the page is current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfproof.telemetry.promql import filled, quoted, resets_template, value_template
from perfproof.telemetry.queries import QUERIES, metric_names
from perfproof.telemetry.queries_doc import queries_markdown
from perfproof.telemetry.registry import COUNTED, TILE_MS, Over, Query, derived, dimension


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_formula_has_the_dimension_of_its_unit(query: Query) -> None:
    for term in query.terms:
        assert derived(term, query.over) == dimension(query.unit), term


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_rate_comes_as_average_and_as_burst(query: Query) -> None:
    if query.over in (Over.RATE, Over.BURST):
        name, _, kind = query.id.rpartition("_")
        assert kind == {Over.RATE: "average", Over.BURST: "burst"}[query.over]
        pair = {QUERIES[f"{name}_{kind}"].over for kind in ("average", "burst")}
        assert pair == {Over.RATE, Over.BURST}
        assert query.fewest >= 2
    assert (query.over in COUNTED) is ("last_over_time" in value_template(query, joined=False))


def test_known_constants() -> None:
    """512 operations a matrix count, not 4; KiB are 1024 bytes; a vector add is 64 of them."""
    (matrix,) = QUERIES["matrix_bf16_average"].terms
    assert matrix.scale == pytest.approx(512e-12)
    (read,) = QUERIES["hbm_read_average"].terms
    assert read.scale == pytest.approx(1024e-9)
    scales = {dict(t.matchers)["name"]: t.scale * 1e12 for t in QUERIES["fp64_average"].terms}
    assert scales == pytest.approx({
        "SQ_INSTS_VALU_MFMA_MOPS_F64": 512, "SQ_INSTS_VALU_FMA_F64": 128,
        "SQ_INSTS_VALU_ADD_F64": 64, "SQ_INSTS_VALU_MUL_F64": 64,
    })  # fmt: skip


def test_counters_go_by_the_metric_that_has_them() -> None:
    """Never by a bare counter name, which no collector exports."""
    assert not [name for name in metric_names() if name.isupper()]
    text = value_template(QUERIES["matrix_fp64_average"], joined=False)
    assert 'omnistat_hardware_counter{name="SQ_INSTS_VALU_MFMA_MOPS_F64"}' in text


def test_the_join_is_on_the_node() -> None:
    text = value_template(QUERIES["power"], joined=True)
    assert text.endswith('* on (instance) group_left() (max by (instance) '
                         '(rmsjob_info{jobid="$jobid"}))')  # fmt: skip
    assert "jobid" not in value_template(QUERIES["power"], joined=False)
    assert not re.search(r"power_watts\{[^}]*jobid", text)


def test_a_window_is_filled_in_with_its_start_in_it() -> None:
    text = filled(value_template(QUERIES["power"], joined=True), 1000, 3000, 'a"b')
    assert text is not None
    assert "[2001ms]" in text
    assert r'jobid="a\"b"' in text


def test_a_window_shorter_than_a_tile_has_no_burst() -> None:
    template = value_template(QUERIES["hbm_read_burst"], joined=False)
    assert filled(template, 0, TILE_MS - 2, None) is None
    assert filled(template, 1, TILE_MS, None) is not None


def test_quotes_in_label_values() -> None:
    assert quoted('a\\"\n') == r"a\\\"\n"  # "\\\\" + '\\"' + "\\n"


def test_resets_are_asked_of_every_term() -> None:
    assert resets_template(QUERIES["fp64_average"], joined=False).count("resets(") == 4


def test_the_page_is_current(root: Path) -> None:
    assert (root / "docs" / "queries.md").read_text(encoding="utf-8") == queries_markdown()
