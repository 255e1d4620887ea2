"""`foms.png`: same bytes, readable with any number of levers, whatever was measured."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from perfproof.levers.story.decisions import decisions
from perfproof.levers.story.plot import draw, png
from perfproof.levers.story.plot_forest import forest, lines_of
from perfproof.levers.story.plot_runs import runs
from perfproof.levers.story.record import Loop, rows
from perfproof.report.units import gain
from tests.levers.story.conftest import RICH
from tests.levers.story.loops import Truth, loop_of, play, spec


def _axes() -> Any:
    return Figure(figsize=(10, 5)).subplots()


def test_same_loop_same_bytes_whatever_the_user_sets(rich: Loop, tmp_path: Path) -> None:
    before = png(rich)
    with mpl.rc_context({"font.size": 22.0, "savefig.dpi": 40, "lines.linewidth": 9}):
        draw(rich, tmp_path / "x" / "foms.png")
    assert (tmp_path / "x" / "foms.png").read_bytes() == before
    assert list((tmp_path / "x").iterdir()) == [tmp_path / "x" / "foms.png"]


def test_no_time_and_no_version_inside(rich: Loop) -> None:
    image = Image.open(io.BytesIO(png(rich)))
    assert "Software" not in image.info
    assert image.format == "PNG"
    assert image.width == 1100


def test_roles_are_told_by_marker_and_excluded_runs_are_crossed(rich: Loop) -> None:
    axes, made = _axes(), rows(rich)
    runs(axes, rich, made)
    shown = {line.get_label(): line for line in axes.lines}
    kinds = [label for label in shown if not label.startswith("_")]
    markers = {shown[label].get_marker() for label in kinds}
    assert len(markers) == len(kinds)
    assert {"baseline", "best so far", "candidate", "confirmation, best"} <= set(kinds)
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    out = sum(len(line.get_xdata()) for line in crosses)
    assert out == sum(r.result.ending != "measured" or bool(r.result.differs) for r in made)


def test_the_level_steps_when_a_lever_is_accepted(rich: Loop) -> None:
    axes = _axes()
    runs(axes, rich, rows(rich))
    level = next(line for line in axes.lines if line.get_label() == "level of the best")
    values = np.unique(np.round(np.asarray(level.get_ydata(), float)))
    assert list(values) == pytest.approx([100, 130], abs=2)


def test_forest_has_every_tried_lever_and_the_total(rich: Loop) -> None:
    axes, found = _axes(), decisions(rich)
    forest(axes, found, lines_of(found))
    names = [label.get_text() for label in axes.get_yticklabels()]
    tried = [lever for lever in found.levers if lever.order is not None]
    assert names[:-1] == [f"{lever.order}  {lever.id}" for lever in tried]
    assert names[-1] == "best against baseline"
    words = [text.get_text() for text in axes.texts]
    assert "confirmed" in words[-1]
    assert found.confirmation.effect is not None
    assert gain(found.confirmation.effect) in words[-1]


def test_a_huge_interval_does_not_hide_the_others() -> None:
    truth = Truth({"a": 0.3})
    found = decisions(loop_of(truth, spec(truth)))
    wide = found.levers[0].model_copy(update={"interval": (-0.9, 4e21)})
    axes = _axes()
    odd = found.model_copy(update={"levers": [wide]})
    forest(axes, odd, lines_of(odd))
    assert axes.get_xlim()[1] < 2
    assert any(line.get_marker() == ">" for line in axes.lines)


@pytest.mark.parametrize("steps", [0, 1, 5, 7])
def test_every_step_has_a_plot(rich_spec: Any, steps: int) -> None:
    explored, _ = play(RICH, rich_spec, steps)
    assert png(Loop(explored[-1], None, "stopped-0")).startswith(b"\x89PNG")
