"""Plots: same bytes, themed ink, unique ids, words for those who do not see them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from perfproof.core.errors import InputError
from perfproof.report import plots
from perfproof.report.svg import standalone
from perfproof.report.tables import Timeline, Top, Tops, read_rows, timelines, tops
from perfproof.schema.base import Reason

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [Timeline(0, (50.0, 20.0, 5.0, 25.0), 100.0), Timeline(1, (10.0, 0.0, 0.0, 0.0), 10.0)]
TOPS = Tops(0, "top_kernels", [Top("void k<$a_b$>(float*)\n\x07</text>", 3, 12.5, 0.25)])


@pytest.fixture
def drawn(parts: Any) -> list[plots.Plot]:
    return [
        plots.where_the_step_goes(ROWS),
        plots.steady_steps(parts.foms),
        plots.top_bars(TOPS),
        plots.loss_curve(parts.foms),
    ]


def test_svg_is_labelled_themed_and_small(drawn: list[plots.Plot]) -> None:
    for plot in drawn:
        root = ET.fromstring(plot.svg)
        words = [root.find(f"{SVG}{kind}") for kind in ("title", "desc")]
        assert [word is not None and word.text for word in words] == [plot.title, plot.alt]
        assert root.get("role") == "img"
        assert not {"width", "height"} & root.attrib.keys()
        assert "currentColor" in plot.svg
        assert "#010203" not in plot.svg
        assert "<metadata" not in plot.svg
        assert "<style" not in plot.svg
        assert "DejaVu" not in plot.svg
        assert len(plot.svg) < 60_000


def test_ids_are_unique_over_all_plots_and_references_hold(drawn: list[plots.Plot]) -> None:
    text = "".join(plot.svg for plot in drawn)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    used = re.findall(r"url\(#([^)]+)\)", text) + re.findall(r'href="#([^"]+)"', text)
    assert used
    assert set(used) <= set(ids)


def test_a_users_matplotlib_settings_do_not_matter(parts: Any) -> None:
    before = plots.steady_steps(parts.foms).svg
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        assert plots.steady_steps(parts.foms).svg == before
        assert mpl.rcParams["font.size"] == 30


def test_text_of_names_is_text(drawn: list[plots.Plot]) -> None:
    texts = ["".join(node.itertext()) for node in ET.fromstring(drawn[2].svg).iter(f"{SVG}text")]
    assert any("void k<$a_b$>(float*)  </text>" in text for text in texts), texts


def test_the_description_has_the_numbers(drawn: list[plots.Plot]) -> None:
    alt = drawn[0].alt.replace("\N{NO-BREAK SPACE}", " ")
    assert alt.startswith(
        "rank 0: computation 50.0 %, exposed communication 20.0 %, "
        "exposed copies 5.0 %, idle 25.0 %"
    )
    assert "0.25" in drawn[3].alt


def test_bars_are_as_long_as_their_shares() -> None:
    svg = plots.where_the_step_goes(ROWS[:1]).svg
    bars = re.findall(r'<path d="([^"]+)" clip-path', svg)
    assert len(bars) == 4
    ends = [[float(x) for x in re.findall(r"[ML] ([0-9.]+) ", bar)] for bar in bars]
    widths = np.array([max(xs) - min(xs) for xs in ends])
    assert np.allclose(widths / widths.sum(), [0.5, 0.2, 0.05, 0.25], atol=1e-3)


def test_ten_thousand_steps_stay_small_and_keep_their_outlier(parts: Any, make: Any) -> None:
    times = [0.1] * 10_000
    few = plots.steady_steps(make.changed(parts.foms, steady_step_times_s=times)).svg
    times[5_000] = 0.9
    many = plots.steady_steps(make.changed(parts.foms, steady_step_times_s=times)).svg
    assert len(many) < 300_000
    assert many != few


def test_a_loss_that_is_not_finite_is_drawn_and_told(parts: Any) -> None:
    curve = [point.model_dump() for point in parts.foms.loss_curve]
    curve[2] |= {"loss": None, "reasons": {"loss": Reason.NON_FINITE}}
    foms = type(parts.foms).model_validate(parts.foms.model_dump() | {"loss_curve": curve})
    plot = plots.loss_curve(foms)
    assert "not finite in 1" in plot.alt
    assert plot.svg != plots.loss_curve(parts.foms).svg


def test_only_broken_losses_can_be_drawn(parts: Any) -> None:
    curve = [{"epoch": 0, "loss": None, "reasons": {"loss": "non_finite"}}]
    foms = type(parts.foms).model_validate(parts.foms.model_dump() | {"loss_curve": curve})
    assert "no finite loss" in plots.loss_curve(foms).alt


def test_standalone_brings_its_colours(drawn: list[plots.Plot]) -> None:
    text = standalone(drawn[0].svg)
    assert "prefers-color-scheme:dark" in text
    ET.fromstring(text)


def test_tables_are_read_with_their_digest(tmp_path: Path, make: Any) -> None:
    table = make.table(tmp_path, "t.csv", make.kernels(["a", "b"]))
    assert [row["kernel"] for row in read_rows(tmp_path, table)] == ["a", "b"]
    with (tmp_path / "t.csv").open("a") as stream:
        stream.write("more\n")
    with pytest.raises(InputError, match="another digest"):
        read_rows(tmp_path, table)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(InputError, match="no such file"):
        read_rows(tmp_path, table)


def test_a_timeline_without_a_row_is_refused(tmp_path: Path, parts: Any, make: Any) -> None:
    rows = [row for row in make.timeline(1, 1, 1, 1) if row["type"] != "idle_time"]
    table = make.table(tmp_path, "w.csv", rows)
    rank = make.rank(tables={"window_timeline": table.model_dump()})
    summary = make.changed(parts.traces, ranks=[rank.model_dump()])
    with pytest.raises(InputError, match="idle_time"):
        timelines(tmp_path, summary)


def test_cpu_operators_stand_in_for_kernels(tmp_path: Path, parts: Any, make: Any) -> None:
    rows = [
        {"op": name, "count": 2, "total_us": 9.0, "self_us": time, "self_fraction_of_window": 0.1}
        for name, time in [("aten::add", 1.0), ("aten::mm", 5.0), ("aten::cat", 1.0)]
    ]
    table = make.table(tmp_path, "c.csv", rows)
    rank = make.rank(gpu_events=0, window_kind="cpu_span", tables={"cpu_ops": table.model_dump()})
    summary = make.changed(parts.traces, ranks=[rank.model_dump()])
    found = tops(tmp_path, summary, 2)
    assert found is not None
    assert [row.name for row in found.rows] == ["aten::mm", "aten::add"]
    assert timelines(tmp_path, summary) == []
    assert "own time" in plots.top_bars(found).title
