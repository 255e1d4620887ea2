"""What an author is given: the files that claims may cite, the vocabulary, the form."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from perfproof.claims.metrics import METRICS
from perfproof.claims.metrics_doc import metrics_markdown
from perfproof.core.errors import InputError
from perfproof.core.files import canonical_json
from perfproof.schema.claims import ClaimSet, Source
from perfproof.schema.levers import LeverCatalog
from perfproof.schema.run import Inventory
from perfproof.schema.traces import RankTrace, TraceSummary

FOMS = "foms.json"
SUMMARY = {Source.TRACE: "tables/trace_summary.json", Source.TELEMETRY: "telemetry_summary.json"}


def given(
    source: Source,
    base: Path,
    inventory: Inventory,
    traces: TraceSummary,
    catalog: LeverCatalog | None,
) -> dict[str, bytes]:
    """Contents by name, as in the analysis directory `base`; besides `metrics.md`, the schema of
    the answer, the run's id and its levers.
    """
    names = [SUMMARY[source], *([FOMS] if (base / FOMS).is_file() else [])]
    if source is Source.TRACE:
        names += _tables(traces)
    levers = [] if catalog is None else [lever.model_dump(mode="json") for lever in catalog.levers]
    made = {
        "run.json": canonical_json({"run_id": inventory.run_id, "source": source.value}),
        "metrics.md": metrics_markdown(),
        "claims.schema.json": canonical_json(ClaimSet.model_json_schema(by_alias=True)),
        "levers.json": canonical_json(levers),
    }
    return {name: _read(base / name) for name in names} | {
        name: text.encode() for name, text in made.items()
    }


def citable(inputs: Iterable[str], source: Source) -> frozenset[str]:
    """The inputs that hold measured numbers."""
    return frozenset(
        name for name in inputs if name.startswith("tables/") or name in (FOMS, SUMMARY[source])
    )


def sound_ranks(source: Source, traces: TraceSummary) -> frozenset[int]:
    """Ranks whose data can bear a claim; claims from telemetry name none."""
    if source is Source.TELEMETRY:
        return frozenset()
    return frozenset(rank.rank for rank in traces.ranks if _is_sound(rank))


def _is_sound(rank: RankTrace) -> bool:
    bad = any(finding.severity == "bad" for finding in rank.findings)
    return rank.window_kind != "empty" and not bad


def _tables(traces: TraceSummary) -> list[str]:
    """The tables that the vocabulary reads, and the steps, of all ranks whose data are sound."""
    wanted = {metric.table.removesuffix(".csv") for metric in METRICS.values()} | {"steps"}
    sound = [rank.tables for rank in traces.ranks if _is_sound(rank)]
    found = [table.file for tables in (*sound, traces.cross_rank) for name, table in tables.items()
             if name in wanted]  # fmt: skip
    return sorted(found)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise InputError(path, str(fault.strerror), "a file of the analysis") from None
