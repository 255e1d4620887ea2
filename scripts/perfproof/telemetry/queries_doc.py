"""`docs/queries.md`, generated from the query registry."""

from __future__ import annotations

from perfproof.telemetry.promql import value_template
from perfproof.telemetry.queries import QUERIES
from perfproof.telemetry.registry import TILE_MS, Over, Query, Term

_INTRO = f"""# Telemetry queries

Generated from `perfproof.telemetry.queries` by `perfproof.schema.export`. Do not edit.

Every number that the analysis takes from telemetry is one of these queries. Each has two
evaluators that give the same numbers: a built-in one on the export, and MetricsQL (PromQL with
VictoriaMetrics' functions) on a VictoriaMetrics server; `perfproof.telemetry.summarize --evaluator
promql` asks the second one.

- **Window.** A query is asked once for each stretch of steady time, at the stretch's last
  millisecond (`time=`), with a lookbehind `$window` as long as the stretch. Stretches come from the
  run's own records, never from a file's time. Samples before the run's start or after its end are
  left out and counted.
- **Several stretches.** Means weigh by samples, rates by the seconds that they are about; the
  largest value and the sum of increases are taken as they are.
- **Average and burst** of a counter are two figures: the increase over the whole window, and the
  largest rate of any {TILE_MS // 1000} s tile that lies in it. On bursty loads they are far
  apart, and they are never compared.
- **Cards, interfaces, nodes.** A figure has one reading each; the column *across* says how they
  become one number. The lowest and the highest stay beside it by name.
- **Jobs.** Device metrics carry no job label. A store that holds several jobs is asked with the
  join `(query) * on (instance) group_left() (max by (instance) (rmsjob_info{{jobid="…"}}))`; a
  store of one job is asked without it.
- **Counters.** A counter that goes back in the window gives null (`counter_reset`): what was
  counted before the reset is lost. Rates and increases need two samples.
- `perfproof_vram_used_bytes`, `perfproof_throttled` and memory in bytes are made from what the file
  has (share in use times capacity, bits of the throttle mask) before a query is asked.
"""


def queries_markdown() -> str:
    """The whole page."""
    return "\n".join([_INTRO, *(_section(query) for query in QUERIES.values())])


def _section(query: Query) -> str:
    least = f"{query.fewest} samples" if query.fewest > 1 else "1 sample"
    rows = [
        ("meaning", query.meaning),
        ("method", query.over.value),
        ("unit", query.unit),
        ("across", f"{query.across} over {query.entity}s"),
        ("needs", least),
        ("formula", "; ".join(_formula(query, term) for term in query.terms)),
        ("MetricsQL", f"`{value_template(query, joined=False)}`"),
    ]
    lines = [f"| {name} | {text.replace('|', chr(92) + '|')} |" for name, text in rows]
    return "\n".join([f"## {query.id}", "", "|  |  |", "|---|---|", *lines, ""])


def _formula(query: Query, term: Term) -> str:
    per = "/s" if query.over in (Over.RATE, Over.BURST) else ""
    labels = "".join(f" {value}" for _, value in term.matchers)
    factors = "".join(f" × {factor.value:g} {factor.unit}" for factor in term.factors)
    return f"`{term.metric}`{labels} in {term.unit}{per}{factors}"
