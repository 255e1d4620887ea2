"""Who claimed what, and how often each author was right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perfproof.report.units import number, percent, shown
from perfproof.report.view_data import Grid
from perfproof.schema.authors import AuthorRecord, AuthorScore
from perfproof.schema.base import Reason
from perfproof.schema.claims import Verdict, VerifiedClaim
from perfproof.schema.report import Report


def scores(claims: Sequence[VerifiedClaim], records: Sequence[AuthorRecord]) -> list[AuthorScore]:
    """One row an author, by name; one whose entries were all rejected has a row too."""
    rejected: Counter[str] = Counter()
    for record in records:
        rejected[record.author] += len(record.rejected)
    names = sorted({claim.author for claim in claims} | rejected.keys())
    return [_score(name, claims, rejected[name]) for name in names]


def _score(author: str, claims: Sequence[VerifiedClaim], rejected: int) -> AuthorScore:
    found = Counter(claim.verdict for claim in claims if claim.author == author)
    judged = found[Verdict.VERIFIED] + found[Verdict.REFUTED]
    return AuthorScore(
        author=author,
        claims=found.total(),
        verified=found[Verdict.VERIFIED],
        refuted=found[Verdict.REFUTED],
        inconclusive=found[Verdict.INCONCLUSIVE],
        rejected=rejected,
        right=found[Verdict.VERIFIED] / judged if judged else None,
        reasons={} if judged else {"right": Reason.TOO_FEW_VALUES},
    )


def authors_grid(report: Report) -> Grid:
    """The scores as text."""
    head = ["author", "claims", "verified", "refuted", "inconclusive", "rejected", "right"]
    rows = [
        [a.author, *(number(n) for n in (a.claims, a.verified, a.refuted, a.inconclusive)),
         number(a.rejected), shown(a, "right", percent)]
        for a in report.authors
    ]  # fmt: skip
    return Grid("Claims by author", head, rows, code=(0,))


def rejections_grid(report: Report) -> Grid:
    """Entries that were no claims of this run, each with its reason."""
    rows = [
        [record.author, record.source.value, item.entry, item.reason]
        for record in report.author_records
        for item in record.rejected
    ]
    return Grid("Rejected entries", ["author", "data", "entry", "why"], rows, (0, 2), (1, 3))


def authors_note(report: Report) -> str:
    """How each other author ended; empty without one."""
    return " ".join(
        f"{record.author} on {record.source.value} data ended {record.status}: {record.reason}."
        + ("" if record.writes_confined else " Its writes could not be confined on this system.")
        for record in report.author_records
    )
