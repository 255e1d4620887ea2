"""Upper panel of `foms.png`: the figure of every run, and the level of the best recipe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from perfproof.levers.evidence import valid
from perfproof.levers.story.record import Loop, Row
from perfproof.report.units import clip

# Label, marker, colour. Okabe and Ito's colours: told apart with any colour vision; the markers
# tell the roles apart without colour.
STYLE = {
    "baseline": ("baseline", "o", "#6f7681"),
    "best": ("best so far", "s", "#0072b2"),
    "candidate": ("candidate", "^", "#d55e00"),
    "confirmed best": ("confirmation, best", "D", "#009e73"),
    "confirmed baseline": ("confirmation, baseline", "v", "#6f7681"),
}
_LEVEL, _SHADE, _OUT = "#56b4e9", "#f0f2f4", "#000000"


@dataclass(frozen=True)
class _Span:
    """Consecutive runs for one thing; `label` is the lever's place, or a word."""

    first: int
    last: int
    label: str
    best: str


def runs(axes: Axes, loop: Loop, made: Sequence[Row]) -> None:
    """Draw all runs in order; `made` as `record.rows` gives them."""
    spans = list(_spans(loop, made))
    _shade(axes, spans)
    _levels(axes, made, spans)
    for kind, (label, marker, colour) in STYLE.items():
        own = [row for row in made if _kind(row, loop.start) == kind and valid(row.result)]
        if own:
            _points(axes, own, marker, colour, label)
    _left_out(axes, made)
    spec = loop.explored.spec
    axes.set_xlabel("run")
    label = f"{clip(spec.metric, 40)}\n{clip(spec.unit, 30)}, {spec.direction} is better"
    axes.set_ylabel(label, parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(-0.7, max(len(made), 1) - 0.3)
    axes.margins(y=0.12)


def _kind(row: Row, start: str) -> str:
    if row.role != "confirmation":
        return row.role
    is_baseline = row.result.measurement.trial == start
    return "confirmed baseline" if is_baseline else "confirmed best"


def _spans(loop: Loop, made: Sequence[Row]) -> Iterator[_Span]:
    order = {record.id: record for record in loop.tried()}
    for (role, lever), group in groupby(made, key=lambda row: (_part(row), row.lever)):
        indices = [row.index for row in group]
        record = order[lever] if lever else None
        label = str(record.order) if record else role
        best = (record.against if record else None) or loop.start
        best = loop.explored.best if role == "confirmation" else best
        yield _Span(indices[0], indices[-1], label, best)


def _part(row: Row) -> str:
    return row.role if row.role in ("baseline", "confirmation") else "lever"


def _shade(axes: Axes, spans: Sequence[_Span]) -> None:
    """Bands with the number of the lever that the runs were made for."""
    for place, span in enumerate(spans):
        if place % 2:
            axes.axvspan(span.first - 0.5, span.last + 0.5, color=_SHADE, lw=0, zorder=0)
        axes.text(
            (span.first + span.last) / 2,
            1.01,
            span.label,
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=8,
        )


def _levels(axes: Axes, made: Sequence[Row], spans: Sequence[_Span]) -> None:
    """The geometric mean of the best recipe's runs while it was the best, as steps."""
    edges, levels = [], []
    for span in spans:
        level = _mean(made, span.best)
        if level is not None:
            edges += [span.first - 0.5, span.last + 0.5]
            levels += [level, level]
    if edges:
        axes.plot(edges, levels, color=_LEVEL, linewidth=1.6, zorder=1, label="level of the best")


def _mean(made: Sequence[Row], trial: str) -> float | None:
    values = [
        row.result.value
        for row in made
        if row.result.measurement.trial == trial and valid(row.result) and row.result.value
    ]
    logs = [math.log(value) for value in values if value is not None and value > 0]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def _points(axes: Axes, own: Sequence[Row], marker: str, colour: str, label: str) -> None:
    axes.plot(
        [row.index for row in own],
        [_value(row) for row in own],
        marker,
        color=colour,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.5,
        label=label,
        zorder=3,
    )


def _value(row: Row) -> float:
    return math.nan if row.result.value is None else row.result.value


def _left_out(axes: Axes, made: Sequence[Row]) -> None:
    """Runs that were not compared: a cross at their figure, at the lower edge without one."""
    out = [row for row in made if not valid(row.result)]
    with_value = [row for row in out if row.result.value is not None]
    without = [row.index for row in out if row.result.value is None]
    if not out:
        return
    places, values = [row.index for row in with_value], [_value(row) for row in with_value]
    label = "left out (no figure: lower edge)"
    crosses = axes.plot(places, values, "x", label=label)
    edge = axes.get_xaxis_transform()
    crosses += axes.plot(without, [0.025] * len(without), "x", transform=edge, clip_on=False)
    for cross in crosses:
        cross.set(color=_OUT, markersize=7, zorder=4)
