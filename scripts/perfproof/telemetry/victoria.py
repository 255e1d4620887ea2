"""The second evaluator: the registry's PromQL, asked of a real VictoriaMetrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from perfproof.core.victoria import Victoria, victoria
from perfproof.telemetry.evaluate import Name, Reading, Readings, SpanMs
from perfproof.telemetry.export import write_export
from perfproof.telemetry.promql import (
    count_template,
    filled,
    is_counted,
    resets_template,
    seconds_template,
    value_template,
)
from perfproof.telemetry.registry import ENTITY_LABELS, Query
from perfproof.telemetry.store import Store


@dataclass(frozen=True)
class ByPromql:
    """Answers registered queries as `evaluate` does."""

    server: Victoria

    def readings(self, query: Query, span: SpanMs, jobid: str | None = None) -> Readings:
        """Readings of samples in `span` (first and last ms); every query is asked at its end."""
        joined = jobid is not None
        values = self._ask(query, value_template(query, joined), span, jobid)
        seconds = self._ask(query, seconds_template(query, joined), span, jobid)
        resets = {}
        if is_counted(query):
            resets = self._ask(query, resets_template(query, joined), span, jobid)
        counts = self._ask(query, count_template(query, joined), span, jobid)
        whole = self._ask(query, _presence(query, joined), span, jobid)
        return {
            name: Reading(
                values.get(name), round(count), seconds.get(name, 0.0),
                round(resets.get(name, 0.0)),
            )
            for name, count in counts.items()
            if name in whole
        }  # fmt: skip

    def _ask(
        self, query: Query, template: str, span: SpanMs, jobid: str | None
    ) -> dict[Name, float]:
        text = filled(template, *span, jobid)
        if text is None:
            return {}
        found = {}
        for sample in self.server.instant(text, span[1]):
            if sample.value == sample.value:
                name = tuple(sample.labels.get(label, "") for label in ENTITY_LABELS[query.entity])
                found[name] = sample.value
        return found


def _presence(query: Query, joined: bool) -> str:
    """Entities that have every term of the query."""
    counts = [
        count_template(Query("", "", query.over, (term,), "", query.entity), joined)
        for term in query.terms
    ]
    return counts[0] if len(counts) == 1 else " + ".join(f"({text})" for text in counts)


@contextmanager
def by_promql(program: str, store: Store) -> Iterator[ByPromql]:
    """The store in a server of its own. Raises StoreError where that does not start."""
    with victoria(program) as server:
        server.load(write_export(store))
        yield ByPromql(server)
