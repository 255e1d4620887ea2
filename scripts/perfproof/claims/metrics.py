"""The closed vocabulary: every metric a claim may use, by name."""

from __future__ import annotations

from perfproof.claims.metrics_telemetry import TELEMETRY_METRICS
from perfproof.claims.metrics_trace import TRACE_METRICS
from perfproof.claims.vocabulary import Metric

METRICS: dict[str, Metric] = {metric.name: metric for metric in TRACE_METRICS + TELEMETRY_METRICS}
