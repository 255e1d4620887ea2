"""`foms.png`: the figure of every run with the best recipe's level, and the gain of every lever."""

from __future__ import annotations

import io
import os
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from perfproof.levers.story.decisions import decisions
from perfproof.levers.story.plot_forest import ROW_IN, forest, lines_of
from perfproof.levers.story.plot_runs import runs
from perfproof.levers.story.record import Loop, rows
from perfproof.report.svg import settings

WIDTH_IN = 10.0
_RUNS_IN, _EDGE_IN, _DPI = 4.2, 1.2, 110


def png(loop: Loop) -> bytes:
    """The picture: same loop, same bytes (with the same matplotlib)."""
    found, made = decisions(loop), rows(loop)
    lines = lines_of(found)
    lower = _EDGE_IN + ROW_IN * max(1, len(lines))
    with settings():
        figure = Figure(figsize=(WIDTH_IN, _RUNS_IN + lower), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, 1, height_ratios=[_RUNS_IN, lower])
        upper, below = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
        runs(upper.subplots(), loop, made)
        if made:
            upper.legend(loc="outside upper left", ncols=5, fontsize=9)
        forest(below.subplots(), found, lines)
        buffer = io.BytesIO()
        nothing: dict[str, str | None] = {"Software": None}
        figure.savefig(buffer, format="png", dpi=_DPI, facecolor="white", metadata=nothing)
    return buffer.getvalue()


def draw(loop: Loop, path: Path) -> None:
    """Write the picture to `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(png(loop))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
