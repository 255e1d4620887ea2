"""The vocabulary: closed, documented, and the same words on both sides."""

from __future__ import annotations

from pathlib import Path

from perfproof.claims.kernel_groups import KERNEL_GROUPS
from perfproof.claims.metrics import METRICS
from perfproof.claims.metrics_doc import metrics_markdown
from perfproof.claims.metrics_telemetry import TELEMETRY_METRICS
from perfproof.claims.metrics_trace import (
    COMM_NAME_REGEX,
    COMPUTE_GROUPS,
    MEMCPY_KERNEL_REGEX,
    SHORT_KERNEL_US,
    TRACE_METRICS,
)
from perfproof.claims.verifier.raw import _role
from perfproof.schema.claims import BottleneckClass
from perfproof.traces import groups, short


def test_names_are_unique() -> None:
    assert len(METRICS) == len(TRACE_METRICS) + len(TELEMETRY_METRICS)


def test_every_class_can_be_claimed() -> None:
    reachable = {
        bottleneck
        for metric in METRICS.values()
        for bottleneck in [*metric.class_rule.classes.values(), metric.class_rule.default]
    }
    assert set(BottleneckClass) <= reachable


def test_the_page_is_current(root: Path) -> None:
    assert (root / "docs" / "metrics.md").read_text(encoding="utf-8") == metrics_markdown()


def test_the_page_defines_every_metric_and_parameter() -> None:
    page = metrics_markdown()
    for metric in METRICS.values():
        assert f"### {metric.name}\n" in page
        assert all(f"parameter `{param.name}`" in page for param in metric.params)


def test_the_tables_use_the_same_definitions() -> None:
    """Two implementations, one definition: the trace stage keeps its own copy."""
    assert groups.COMM == COMM_NAME_REGEX
    own = {name: text for name, text in groups.GROUPS.items() if text}
    assert own == {name: text for name, text in KERNEL_GROUPS.items() if name in own}
    assert [*KERNEL_GROUPS, "other"] == list(groups.NAMES)
    assert KERNEL_GROUPS["memset"] == groups.MEMSET
    assert short.THRESHOLD_NS == SHORT_KERNEL_US * 1000
    assert set(COMPUTE_GROUPS) <= set(groups.NAMES)
    for name in ("__amd_rocclr_copyBufferAligned", "MEMORY_COPY_DEVICE", "Memcpy DtoD", "copy"):
        assert (groups.group_of(name) == "memcpy") is (_role(name, "kernel") == "memcpy")
    assert MEMCPY_KERNEL_REGEX
