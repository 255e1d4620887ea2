"""Traces with one known bottleneck each, recorded on one and two H200: is it the first claim?"""

from __future__ import annotations

import pytest
from benchmarks.diagnosis import SHIPPED, ranking, scored, traces_of

from perfproof.core.files import read_json

# The host works or waits on its own there; the claims see that the GPU idles and blame dispatch.
# docs/performance.md says so.
NOT_YET = {"allocator_churn", "host_io", "host_preprocessing", "straggler"}
LABELS: dict[str, str] = read_json(SHIPPED / "labels.json")


@pytest.mark.parametrize("name", sorted(set(LABELS) - NOT_YET))
def test_the_bottleneck_is_the_first_claim(name: str) -> None:
    assert ranking(traces_of(SHIPPED, name))[0][0] == LABELS[name]


def test_every_label_has_its_traces_and_every_trace_a_label() -> None:
    owned = [path for name in LABELS for path in traces_of(SHIPPED, name)]
    assert len(owned) == len(set(owned))
    assert set(owned) == {p for p in SHIPPED.glob("*.json*") if p.name != "labels.json"}
    assert max(path.stat().st_size for path in owned) < 300_000


def test_scores() -> None:
    cases = [
        {"label": "a", "found": [("a", 0.9), ("b", 0.1)]},
        {"label": "a", "found": [("b", 0.9), ("a", 0.1)]},
        {"label": "b", "found": []},
    ]
    score = scored(cases)
    assert (score["top1"], score["top2"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert score["confusion"] == {"a": {"a": 1, "b": 1}, "b": {"none": 1}}
