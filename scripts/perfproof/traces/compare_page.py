"""The comparison of two traces as a short Markdown page."""

from __future__ import annotations

from perfproof.schema.traces import ComparedRow, ComparedSide, TraceComparison

_SHOWN = 10
_LONGEST = 90
_TITLES = {
    "categories": "Kernel groups and phases",
    "operators": "Operators",
    "kernels": "Kernels",
    "gemm": "GEMM kernels",
}
_WHERE = {"both": "", "only_a": "only A", "only_b": "only B"}


def page(found: TraceComparison) -> str:
    """Both sides, totals and the largest differences of each level."""
    lines = [
        "# Comparison of traces",
        "",
        f"All numbers are {found.basis} and per GPU ({found.basis_reason}). "
        "Difference = B - A: positive is time lost, negative time gained. "
        f"Share = difference / A's {'step' if found.basis == 'per step' else 'span'}. "
        "The time of a row is what its GPU events cover, so rows that overlap do not add up.",
        "",
        _side("A", found.a),
        _side("B", found.b),
        "",
        "| | A | B | difference | share |",
        "|---|---|---|---|---|",
    ]
    for total in found.totals:
        numbers = f"{total.a:,.1f} | {total.b:,.1f} | {total.difference:+,.1f}"
        lines.append(f"| {total.name} | {numbers} | {_share(total.share_of_a)} |")
    for level, rows in found.largest.items():
        lines += _level(level, rows, found.tables[level].rows)
    if found.problems:
        lines += ["", "## Problems", ""]
        lines += [f"- `{problem.where}`: {problem.what}" for problem in found.problems]
    return "\n".join(lines) + "\n"


def _side(name: str, side: ComparedSide) -> str:
    steps = ", ".join(str(len(each)) for each in side.steps)
    devices = ", ".join(side.devices) or "device not recorded"
    files = ", ".join(f"`{file}`" for file in side.files)
    return f"- {name}: {files} ({devices}; steps counted: {steps})"


def _level(level: str, rows: list[ComparedRow], total: int) -> list[str]:
    if not rows:
        return []
    keys = list(rows[0].key)
    lines = ["", f"## {_TITLES[level]}", ""]
    lines.append(f"| {' | '.join(keys)} | A µs | B µs | difference µs | share | A × | B × | |")
    lines.append("|---" * (len(keys) + 7) + "|")
    for row in rows[:_SHOWN]:
        names = " | ".join(_cell(text) for text in row.key.values())
        times = f"{row.a_us:,.1f} | {row.b_us:,.1f} | {row.difference_us:+,.1f}"
        counts = f"{row.a_count:.4g} | {row.b_count:.4g}"
        share = _share(row.share_of_a)
        lines.append(f"| {names} | {times} | {share} | {counts} | {_WHERE[row.where]} |")
    if total > _SHOWN:
        lines += ["", f"{total - _SHOWN} more in `{level}.csv`."]
    return lines


def _cell(text: str) -> str:
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return "`" + shown.replace("|", "\\|").replace("`", "'").replace("\n", " ") + "`"


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:+.2%}"
