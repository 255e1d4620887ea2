"""Which entries are claims of the run, and what is said of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfproof.claims.authors.accept import LONGEST_TEXT, MOST_CLAIMS, Terms, accept
from tests.claims.authors.analysis import RUN, TIMELINE, idle_claim, make_analysis


@pytest.fixture(scope="module")
def terms(tmp_path_factory: pytest.TempPathFactory) -> Terms:
    return make_analysis(tmp_path_factory.mktemp("analysis")).terms()


def answer(*claims: Any) -> str:
    return json.dumps({"run_id": RUN, "source": "trace", "claims": claims})


REJECTED: dict[str, tuple[Any, str]] = {
    "text": ("the GPU idles", "found 'the GPU idles'"),
    "no value": (idle_claim(value=None), "value: found None"),
    "unknown class": (idle_claim(**{"class": "vibes"}), "class: found 'vibes'"),
    "unknown key": (idle_claim(certainty=1), "certainty: unknown key"),
    "unknown metric": (
        idle_claim(metric="gpu_idle_fracton"),
        "unknown metric 'gpu_idle_fracton'; expected 'gpu_idle_fraction'",
    ),
    "metric of telemetry": (
        idle_claim(metric="memory_busy_mean"),
        "unknown metric 'memory_busy_mean'",
    ),
    "unit": (idle_claim(unit="percent"), "unit: 'percent'; expected 'fraction'"),
    "two ranks": (idle_claim(ranks=[0, 1]), "ranks: 2 ranks; expected one rank"),
    "rank without data": (idle_claim(ranks=[7]), "ranks: rank 7"),
    "stray parameter": (idle_claim(params={"gpu": 0}), "params: gpu; expected none"),
    "no parameter": (
        idle_claim(metric="exposed_memcpy_fraction", **{"class": "host_io"}),
        "params: none; expected direction",
    ),
    "parameter's kind": (
        idle_claim(metric="exposed_memcpy_fraction", params={"direction": 3}),
        "params.direction: 3; expected str",
    ),
    "no evidence": (idle_claim(evidence=[]), "evidence: a number without evidence"),
    "evidence not given": (
        idle_claim(evidence=[{"file": "../log.txt", "where": "line 3"}]),
        "evidence: '../log.txt', which it was not given",
    ),
    "evidence is no number": (
        idle_claim(evidence=[{"file": "metrics.md", "where": "there"}]),
        "evidence: 'metrics.md', which it was not given",
    ),
    "evidence nowhere": (
        idle_claim(evidence=[{"file": TIMELINE, "where": " "}]),
        "evidence: no row and column",
    ),
    "lever": (idle_claim(levers=["magic"]), "levers: 'magic'"),
    "id of telemetry": (idle_claim(id="TE-001"), "id: 'TE-001'"),
    "no id": (idle_claim(id="1"), "id: found '1'"),
    "long": (idle_claim(statement="x" * (LONGEST_TEXT + 1)), "a text without end"),
    "stuffed": (idle_claim(params={"a": "x" * 30_000}), "bytes; expected at most"),
    "part of nothing": (idle_claim(part_of=["TR-009"]), "part_of: names no accepted claim"),
    "not finite": (idle_claim(value=float("nan")), "a number or text that JSON cannot hold"),
    "half a pair": (idle_claim(statement="\ud800"), "a number or text that JSON cannot hold"),
    "bool": (idle_claim(value=True, ranks=[True]), "expected"),
}


@pytest.mark.parametrize(("entry", "says"), REJECTED.values(), ids=REJECTED)
def test_each_is_rejected_alone_and_with_its_reason(terms: Terms, entry: Any, says: str) -> None:
    good = idle_claim(id="TR-002", levers=["compile"])
    claims, rejected = accept(answer(entry, good), terms)
    if says != "expected":
        assert [claim.id for claim in claims] == ["TR-501"]
        assert [item.entry for item in rejected] == ["claims.0"]
        assert says in rejected[0].reason
    assert all("\n" not in item.reason for item in rejected)
    json.dumps([item.reason for item in rejected], ensure_ascii=False).encode()


def test_an_id_counts_once(terms: Terms) -> None:
    claims, rejected = accept(answer(idle_claim(), idle_claim()), terms)
    assert len(claims) == 1
    assert "id: 'TR-001'; expected an id of its own" in rejected[0].reason


def test_parts_follow_their_whole_to_its_new_name(terms: Terms) -> None:
    parts = [
        idle_claim(id="TR-007"),
        idle_claim(id="TR-003", part_of=["TR-007"]),
        idle_claim(id="TR-004", part_of=["TR-005"]),
        idle_claim(id="TR-005", part_of=["TR-006"]),
    ]
    claims, rejected = accept(answer(*parts), terms)
    assert [(c.id, c.part_of) for c in claims] == [("TR-501", []), ("TR-502", ["TR-501"])]
    assert [item.entry for item in rejected] == ["claims.2", "claims.3"]


def test_a_flood_is_cut(terms: Terms) -> None:
    flood = [idle_claim(id=f"TR-{n:03d}") for n in range(MOST_CLAIMS + 3)]
    claims, rejected = accept(answer(*flood), terms)
    assert (len(claims), len(rejected)) == (MOST_CLAIMS, 3)


def test_ranks_with_bad_data_bear_no_claims(tmp_path: Path) -> None:
    analysis = make_analysis(tmp_path)
    bad = {"code": "x", "severity": "bad", "value": 1.0, "message": "broken"}
    rank = analysis.traces.ranks[0]
    rank.findings.append(type(rank.findings[0]).model_validate(bad))
    claims, rejected = accept(answer(idle_claim()), analysis.terms())
    assert claims == []
    assert TIMELINE not in analysis.inputs()
    assert "evidence" in rejected[0].reason
