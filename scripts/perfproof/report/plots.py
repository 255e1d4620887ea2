"""Plots of one run: where the step goes, steps, top kernels, loss. Each is a labelled SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from perfproof.report.svg import render, settings
from perfproof.report.tables import Timeline, Tops
from perfproof.report.units import SPACE, clip, number, percent, quantity, time_scale
from perfproof.schema.foms import Foms

WIDTH_IN = 7.2
MAX_POINTS = 800
MAX_TICKS = 12
# Name, colour, hatch and label colour of each part. Okabe and Ito's colours: told apart with any
# colour vision, on light and dark ground.
PART_STYLE = (
    ("computation", "#0072b2", "", "#ffffff"),
    ("exposed communication", "#d55e00", "//", "#000000"),
    ("exposed copies", "#cc79a7", "\\\\", "#000000"),
    ("idle", "#6f7681", "", "#ffffff"),
)
BLUE, ORANGE = "#0072b2", "#d55e00"
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


@dataclass(frozen=True)
class Plot:
    """One picture: `name` is its id and file name, `alt` says what it shows with its numbers."""

    name: str
    title: str
    alt: str
    svg: str


def where_the_step_goes(rows: Sequence[Timeline]) -> Plot:
    """Stacked bar per rank: shares of the traced window."""
    title = "Where the traced window goes"
    alt = "; ".join(f"rank {row.rank}: {_parts(row)}" for row in rows)
    with settings():
        figure, axes = _axes(0.95 + 0.36 * len(rows))
        positions = np.arange(len(rows))
        left = np.zeros(len(rows))
        for index, style in enumerate(PART_STYLE):
            shares = np.array([row.share(index) for row in rows])
            _bars(axes, positions, shares, left, style)
            left += shares
        axes.set_yticks(positions, [f"rank {row.rank}" for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, max(1.0, float(left.max())))
        _percent_axis(axes)
        figure.legend(loc="outside upper left", ncols=4, handlelength=1.2, columnspacing=1.4)
        return Plot("plot-window", title, alt, render(figure, "plot-window", title, alt))


def steady_steps(foms: Foms) -> Plot:
    """Time of every steady, unprofiled step, with median and the 5th to 95th percentile."""
    title = "Time of the steady steps"
    times, spread = np.asarray(foms.steady_step_times_s), foms.step_time_s
    median = spread.median if spread else float(np.median(times))
    alt = f"{len(times)} steps, median {quantity(median, 's')}" + (
        f", 5th to 95th percentile {quantity(spread.p5, 's')} to {quantity(spread.p95, 's')}"
        if spread
        else ""
    )
    factor, unit = time_scale(median)
    with settings():
        figure, axes = _axes(2.4)
        if spread:
            axes.axhspan(spread.p5 / factor, spread.p95 / factor, color=BLUE, alpha=0.15, lw=0)
        axes.axhline(median / factor, color=ORANGE, linewidth=1.2)
        _series(axes, times / factor)
        _at_least(axes, 0.1 * median / factor)
        axes.set_xlabel("steady step")
        axes.set_ylabel(unit)
        axes.yaxis.set_major_formatter(PLAIN)
        _whole_ticks(axes, range(len(times)))
        return Plot("plot-steps", title, alt, render(figure, "plot-steps", title, alt))


def top_bars(tops: Tops) -> Plot:
    """The most expensive kernels or CPU operators of one rank, as shares of the window."""
    kind = "kernels" if tops.kind == "top_kernels" else "CPU operators (own time)"
    title = f"Top {kind}, rank {tops.rank}"
    alt = "; ".join(f"{clip(row.name, 60)} {percent(row.fraction)}" for row in tops.rows)
    with settings():
        figure, axes = _axes(0.6 + 0.34 * len(tops.rows))
        positions = np.arange(len(tops.rows))
        axes.barh(positions, [row.fraction for row in tops.rows], height=0.36, color=BLUE)
        for position, row in zip(positions, tops.rows, strict=True):
            text = f"{clip(row.name, 72)}   {percent(row.fraction)}"
            axes.text(0, position - 0.24, text, fontsize=8.5, va="bottom", parse_math=False)
        axes.set_yticks([])
        axes.set_ylim(len(tops.rows) - 0.6, -0.9)
        axes.set_xlim(left=0)
        _percent_axis(axes)
        return Plot("plot-top", title, alt, render(figure, "plot-top", title, alt))


def loss_curve(foms: Foms) -> Plot:
    """Loss of every epoch; a loss that is not finite is a cross at the upper edge."""
    title = "Loss by epoch"
    finite = [(point.epoch, point.loss) for point in foms.loss_curve if point.loss is not None]
    broken = [point.epoch for point in foms.loss_curve if point.loss is None]
    ends = [number(loss) for _, loss in (finite[:1] + finite[-1:])]
    alt = f"{len(foms.loss_curve)} epochs, {' to '.join(ends) or 'no finite loss'}" + (
        f"; not finite in {len(broken)}" if broken else ""
    )
    with settings():
        figure, axes = _axes(2.4)
        epochs, losses = [e for e, _ in finite], [loss for _, loss in finite]
        axes.plot(epochs, losses, color=BLUE, linewidth=1.4, marker="o", markersize=3.5)
        top = axes.get_ylim()[1]
        axes.plot(broken, [top] * len(broken), "x", color=ORANGE, markersize=6, clip_on=False)
        axes.set_xlabel("epoch")
        axes.yaxis.set_major_formatter(PLAIN)
        _whole_ticks(axes, [point.epoch for point in foms.loss_curve])
        return Plot("plot-loss", title, alt, render(figure, "plot-loss", title, alt))


def _axes(height_in: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    return figure, figure.add_subplot()


def _bars(
    axes: Axes,
    positions: np.ndarray,
    shares: np.ndarray,
    left: np.ndarray,
    style: tuple[str, str, str, str],
) -> None:
    label, colour, hatch, ink = style
    bars = axes.barh(
        positions,
        shares,
        left=left,
        height=0.62,
        label=label,
        color=colour,
        hatch=hatch,
        edgecolor="#ffffff66",
        linewidth=0,
    )
    texts = [percent(share) if share >= 0.08 else "" for share in shares]
    axes.bar_label(bars, texts, label_type="center", fontsize=9, color=ink)


def _series(axes: Axes, times: np.ndarray) -> None:
    """The steps as dots; beyond `MAX_POINTS` as the range of each group of steps."""
    if len(times) <= MAX_POINTS:
        size = 6 if len(times) <= 100 else 3.5
        axes.plot(np.arange(len(times)), times, ".", color=BLUE, markersize=size)
        return
    edges = np.linspace(0, len(times), MAX_POINTS + 1).astype(int)
    groups = [times[a:b] for a, b in pairwise(edges)]
    axes.vlines(
        edges[:-1], [g.min() for g in groups], [g.max() for g in groups], BLUE, linewidth=0.8
    )


def _whole_ticks(axes: Axes, places: Sequence[int]) -> None:
    """Ticks at whole numbers; at all of them when they are few."""
    if len(places) <= MAX_TICKS:
        axes.set_xticks(list(places))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _at_least(axes: Axes, span: float) -> None:
    """Widen the y axis to `span`, so that steps that hardly differ look as if they hardly did."""
    low, high = axes.get_ylim()
    more = max(0.0, span - (high - low)) / 2
    axes.set_ylim(max(0.0, low - more), high + more)


def _percent_axis(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g}{SPACE}%"))
    axes.set_xlabel("share of the traced window")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _parts(row: Timeline) -> str:
    names = (label for label, *_ in PART_STYLE)
    return ", ".join(f"{name} {percent(row.share(i))}" for i, name in enumerate(names))
