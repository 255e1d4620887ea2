"""Metric names that Omnistat has no word for, and older words for what it has."""

from __future__ import annotations

USED_BYTES = "perfproof_vram_used_bytes"
THROTTLED = "perfproof_throttled"
PRESENT = "perfproof_card_sampled"
JOB_INFO = "rmsjob_info"
# Omnistat's documentation and its tools name the host's memory differently.
ALIASES = {
    "omnistat_mem_total_bytes": "omnistat_host_mem_total_bytes",
    "omnistat_mem_available_bytes": "omnistat_host_mem_available_bytes",
}
