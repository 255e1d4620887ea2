"""Numbers about the host's threads that could become claims, before any threshold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfproof.claims.candidates import Candidate, from_row
from perfproof.claims.rules import BLOCKING_CALL_REGEX
from perfproof.claims.tables import RankTables

_BLOCKING = re.compile(rf"^{BLOCKING_CALL_REGEX}")
_IDLE = "gpu_idle_fraction_of_window"


def host_candidates(tables: RankTables) -> Iterator[Candidate]:
    """Candidates about the host's threads; those about calls need a GPU."""
    yield from _loader(tables)
    yield from _operators(tables)
    if tables.rank.gpu_events:
        yield from _calls(tables)


def _loader(tables: RankTables) -> Iterator[Candidate]:
    """One loader claim: of its idle time where there is a GPU, of all its time otherwise."""
    rows = tables.rows("dataloader")
    column, metric, what = (
        (_IDLE, "dataloader_gpu_idle_fraction",
         "is GPU idle time while the training thread waits for the data loader")
        if tables.rank.gpu_events
        else ("fraction_of_window", "dataloader_fraction",
              "is the training thread waiting for the data loader")
    )  # fmt: skip
    if len(rows) == 1:
        place = ("dataloader", _thread(rows[0]["thread"]))
        yield from_row(metric, tables, rows[0], place, (column, _IDLE), what)


def _thread(name: str) -> str:
    """`pid/tid` in words; a process's main thread has its number."""
    process, _, thread = name.partition("/")
    return f"thread {thread}" + ("" if process == thread else f" of process {process}")


def _calls(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("runtime_calls"):
        if _BLOCKING.match(row["call"]):
            yield from_row(
                "runtime_call_fraction",
                tables,
                row,
                ("runtime_calls", f"call={row['call']}"),
                ("fraction_of_window", _IDLE),
                f"is spent in {row['call']}",
                {"call": row["call"]},
            )


def _operators(tables: RankTables) -> Iterator[Candidate]:
    for row in tables.rows("cpu_ops"):
        yield from_row(
            "cpu_op_self_fraction",
            tables,
            row,
            ("cpu_ops", f"op={row['op']}"),
            ("self_fraction_of_window", _IDLE),
            f"is spent in the CPU operator {row['op']} itself",
            {"op": row["op"]},
        )
