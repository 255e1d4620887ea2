"""Lower panel of `foms.png`: gain and interval of every lever, and the confirmed total gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from perfproof.levers.story.words import interval, shown
from perfproof.report.units import SPACE, clip, gain
from perfproof.schema.decisions import Decisions, LeverDecision

ROW_IN = 0.34
MINUS = "\N{MINUS SIGN}"
_GOOD, _OTHER, _TOTAL, _INK = "#0072b2", "#d55e00", "#009e73", "#010203"
# Colour and marker by verdict: accepted, everything else, confirmation.
_MARKERS = {_GOOD: "s", _OTHER: "^", _TOTAL: "D"}


@dataclass(frozen=True)
class Line:
    """One row: its name, gain, interval, what to expect, words at its right, colour."""

    name: str
    effect: float | None
    interval: tuple[float, float] | None
    shrunk: float | None
    words: str
    colour: str


def lines_of(found: Decisions) -> list[Line]:
    """Levers as tried, then the confirmation."""
    tried = [lever for lever in found.levers if lever.order is not None]
    lines = [_line(lever) for lever in tried]
    total = found.confirmation
    if total.effect is not None:
        said = f"{gain(total.effect)} {interval(total.interval)}".strip()
        words = f"{said}  {total.outcome.replace('_', ' ')}"
        lines.append(
            Line("best against baseline", total.effect, total.interval, None, words, _TOTAL)
        )
    return lines


def _line(lever: LeverDecision) -> Line:
    said = f"{shown(lever)} {interval(lever.interval)}".strip()
    words = f"{said}  {lever.status.replace('_', ' ')}".strip()
    colour = _GOOD if lever.status == "accepted" else _OTHER
    name = f"{lever.order}  {clip(lever.id, 36)}"
    return Line(name, lever.effect, lever.interval, lever.shrunk, words, colour)


def forest(axes: Axes, found: Decisions, lines: Sequence[Line]) -> None:
    """Draw the lines; ends of intervals beyond the axis are cut."""
    reach = _reach(found, lines)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(max(1, len(lines)) - 0.4, -0.6)
    axes.axvline(0, color=_INK, linewidth=0.8)
    if found.detectable is not None and found.detectable < reach:
        label = f"smallest gain that is found ({gain(found.detectable)})"
        axes.axvline(found.detectable, color=_INK, linewidth=0.8, linestyle=":", label=label)
    for place, line in enumerate(lines):
        _draw(axes, place, line, reach)
    axes.set_yticks(range(len(lines)), [line.name for line in lines])
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(FuncFormatter(_percent))
    axes.xaxis.set_major_locator(MaxNLocator(7))
    axes.set_xlabel("gain over what the lever was held against; hollow: what to expect of it")
    axes.spines["left"].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), fontsize=9)


def _percent(value: float, _: object) -> str:
    return f"{100 * value:+.3g}{SPACE}%".replace("-", MINUS) if abs(value) > 1e-9 else "0"


def _reach(found: Decisions, lines: Sequence[Line]) -> float:
    """Half the width of the axis: effects fit, and intervals unless they are far wider."""
    effects = [abs(line.effect) for line in lines if line.effect is not None]
    ends = [abs(end) for line in lines for end in line.interval or ()]
    core = max([*effects, found.detectable or 0.0, 0.005])
    return 1.15 * min(max([core, *ends]), 2.5 * core)


def _draw(axes: Axes, place: int, line: Line, reach: float) -> None:
    marker = _MARKERS[line.colour]
    if line.interval is not None:
        low, high = (min(max(end, -reach), reach) for end in line.interval)
        axes.plot([low, high], [place, place], color=line.colour, linewidth=1.8, zorder=5)
        ends = [end for end in line.interval if abs(end) <= reach]
        axes.plot(ends, [place] * len(ends), "|", color=line.colour, markersize=9, zorder=5)
        for end, edge, arrow in ((line.interval[0], -reach, "<"), (line.interval[1], reach, ">")):
            if abs(end) > reach and end * edge > 0:
                axes.plot([edge], [place], arrow, color=line.colour, clip_on=False)
    if line.shrunk is not None:
        hollow = axes.plot([line.shrunk], [place], marker, color=line.colour, zorder=3)[0]
        hollow.set(markerfacecolor="white", markersize=8)
    if line.effect is not None:
        axes.plot([line.effect], [place], marker, color=line.colour, markersize=5, zorder=4)
    axes.text(
        1.01,
        place,
        line.words,
        transform=axes.get_yaxis_transform(),
        va="center",
        fontsize=8.5,
        parse_math=False,
    )
