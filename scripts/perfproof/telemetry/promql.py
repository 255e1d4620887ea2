"""PromQL (MetricsQL) of a registered query, as a template and for one window."""

from __future__ import annotations

from string import Template

from perfproof.telemetry.names import JOB_INFO
from perfproof.telemetry.registry import COUNTED, ENTITY_LABELS, TILE_MS, Over, Query, Term
from perfproof.telemetry.store import Matchers

_CHANGE = "(last_over_time($s[$w]) - first_over_time($s[$w]))"
_TIME = "(tlast_over_time($s[$w]) - tfirst_over_time($s[$w]))"
_RATE = f"({_CHANGE} / {_TIME})"
_OVER: dict[Over, Template] = {
    Over.MEAN: Template("avg_over_time($s[$w])"),
    Over.MAX: Template("max_over_time($s[$w])"),
    Over.INCREASE: Template(_CHANGE),
    Over.RATE: Template(_RATE),
    Over.BURST: Template(_RATE),
}


def value_template(query: Query, joined: bool) -> str:
    """The number an entity; `$window`, `$tiles` and, where joined, `$jobid` are to be filled in."""
    text = " + ".join(_term(query, term) for term in query.terms)
    if len(query.terms) > 1:
        text = f"({text})"
    if query.over is Over.BURST:
        text = f"max_over_time(({text})[$tiles:{TILE_MS}ms])"
    return _joined(text) if joined else text


def count_template(query: Query, joined: bool) -> str:
    """Samples an entity, of the first term."""
    return _per_entity(query, f"count_over_time({selector(query.terms[0])}[$window])", joined)


def seconds_template(query: Query, joined: bool) -> str:
    """Seconds between the first and the last sample, of the first term."""
    text = Template(_TIME).substitute(s=selector(query.terms[0]), w="$window")
    return _per_entity(query, text, joined)


def resets_template(query: Query, joined: bool) -> str:
    """How often a counter of the query went back."""
    texts = (f"resets({selector(term)}[$window])" for term in query.terms)
    parts = [f"max by ({_labels(query)}) ({text})" for text in texts]
    text = parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
    return _joined(text) if joined else text


def filled(template: str, first_ms: int, last_ms: int, jobid: str | None) -> str | None:
    """The query for samples from `first_ms` to `last_ms`, to be asked at `last_ms`.

    None where the window holds no whole tile. A lookbehind leaves its start out, so it is 1 ms
    longer than the window.
    """
    tiles = last_ms - (first_ms + TILE_MS - 1) + 1
    if "$tiles" in template and tiles <= 0:
        return None
    return Template(template).substitute(
        window=f"{last_ms - first_ms + 1}ms", tiles=f"{tiles}ms", jobid=quoted(jobid or "")
    )


def selector(term: Term) -> str:
    """`name{label="value"}`."""
    return term.metric + _braces(term.matchers)


def _braces(matchers: Matchers) -> str:
    inner = ",".join(f'{name}="{quoted(value)}"' for name, value in matchers)
    return f"{{{inner}}}" if inner else ""


def quoted(value: str) -> str:
    """A label's value inside double quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _term(query: Query, term: Term) -> str:
    window = f"{TILE_MS}ms" if query.over is Over.BURST else "$window"
    inner = _OVER[query.over].substitute(s=selector(term), w=window)
    text = f"{query.grouped} by ({_labels(query)}) ({inner})"
    factors = "".join(f" * {factor.value:g}" for factor in term.factors)
    return f"{text}{factors}"


def _labels(query: Query) -> str:
    return ", ".join(ENTITY_LABELS[query.entity])


def _per_entity(query: Query, inner: str, joined: bool) -> str:
    text = f"max by ({_labels(query)}) ({inner})"
    return _joined(text) if joined else text


def _joined(text: str) -> str:
    """Only nodes of the job: device metrics carry no job label."""
    info = f'max by (instance) ({JOB_INFO}{{jobid="$jobid"}})'
    return f"({text}) * on (instance) group_left() ({info})"


def is_counted(query: Query) -> bool:
    """Whether the query reads counters, which a reset spoils."""
    return query.over in COUNTED
