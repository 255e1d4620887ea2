"""Which back end gave which trace numbers, and TraceLens's beside ours."""

from __future__ import annotations

from perfproof.report.units import percent, quantity, shown
from perfproof.report.view_data import Grid
from perfproof.schema.claims import VerifiedClaim
from perfproof.schema.tracelens import RankBackend, TraceBackend

# Claims that TraceLens has a number about, with its row.
_ROWS = {"gpu_idle_fraction": "idle_time", "exposed_comm_fraction": "exposed_comm_time"}
_SHOWN = ("busy_time", "idle_time", "total_time", "total_comm_time", "exposed_comm_time")
_WORDS = {
    "busy_time": "busy",
    "idle_time": "idle",
    "total_time": "span",
    "total_comm_time": "communication",
    "exposed_comm_time": "exposed communication",
}


def backend_note(backend: TraceBackend | None) -> str:
    """What was chosen and why, and what rests on it."""
    if backend is None:
        return ""
    if backend.used == "builtin":
        return (
            f"All trace numbers are from the built-in tables. TraceLens was not used: "
            f"{backend.why}."
        )
    note = f" Over all ranks: {backend.collectives_note}" if backend.collectives_note else ""
    return (
        f"Claims, plots and figures rest on the built-in tables; TraceLens {backend.version} "
        f"reported on the same traces as a second opinion ({backend.why}). Its CSV files are in "
        f"tracelens/.{note}"
    )


def backend_grid(backend: TraceBackend | None) -> Grid | None:
    """The timelines by each definition; None where TraceLens was not used."""
    if backend is None or backend.used == "builtin":
        return None
    head = ["rank", "time", "ours, all GPU events", "ours, linked only", "TraceLens", "why"]
    rows = [line for rank in backend.ranks for line in _lines(rank)]
    return Grid("Timeline by both definitions", head, rows, text=(1, 5))


def _lines(rank: RankBackend) -> list[list[str]]:
    rows = [row for row in rank.timeline if row.name in _SHOWN]
    why = [rank.explanation, *([""] * len(rows))]
    if not rows:
        return [[str(rank.rank), "", "", "", "", rank.explanation]]
    return [
        [str(rank.rank), _WORDS[row.name], _ms(row.all_ms), shown(row, "linked_ms", _ms),
         shown(row, "tracelens_ms", _ms), text]
        for row, text in zip(rows, why, strict=False)
    ]  # fmt: skip


def _ms(value: float) -> str:
    return quantity(value, "ms")


def cross_checked(claim: VerifiedClaim, backend: TraceBackend | None) -> VerifiedClaim:
    """The claim with TraceLens's number on the same matter in its note, where there is one."""
    sentence = _sentence(claim, backend)
    return claim.model_copy(update={"note": f"{claim.note}; {sentence}"}) if sentence else claim


def _sentence(claim: VerifiedClaim, backend: TraceBackend | None) -> str:
    if backend is None or claim.metric not in _ROWS or len(claim.ranks) != 1:
        return ""
    rank = next((one for one in backend.ranks if one.rank == claim.ranks[0]), None)
    times = {row.name: row for row in rank.timeline} if rank else {}
    row, whole = times.get(_ROWS[claim.metric]), times.get("total_time")
    if row is None or whole is None or row.tracelens_ms is None or not whole.tracelens_ms:
        return ""
    ours = f", ours there {percent(row.all_ms / whole.all_ms)}" if whole.all_ms else ""
    return (
        f"TraceLens, over the whole file ({_ms(whole.tracelens_ms)}) and not the claim's window: "
        f"{percent(row.tracelens_ms / whole.tracelens_ms)}{ours}"
    )
