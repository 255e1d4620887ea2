"""Verify telemetry claims: recompute each from the raw samples and say what came out.

The samples are read here, so that verdicts are the same bytes on every machine. With
`PERFPROOF_VERIFY_BY=promql` an export is asked by PromQL instead, in a VictoriaMetrics server of
the verifier's own: a third computation, whose last digits may differ.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from perfproof.claims.metrics_telemetry import FEWEST_SAMPLES
from perfproof.claims.verifier.claim_file import verify_file
from perfproof.claims.verifier.command import verifier_command
from perfproof.claims.verifier.judge import Recomputed
from perfproof.claims.verifier.run_files import RunFiles
from perfproof.claims.verifier.scene import CannotSayError
from perfproof.claims.verifier.telemetry_promql import PromqlSource
from perfproof.claims.verifier.telemetry_raw import importable, read_lines, read_table
from perfproof.claims.verifier.telemetry_stat import Key, Matchers, Source, Stat
from perfproof.claims.verifier.telemetry_times import steady
from perfproof.claims.vocabulary import Metric, ShareRule
from perfproof.core.victoria import StoreError, binary, victoria
from perfproof.schema.claims import Claim, VerifiedSet
from perfproof.schema.claims import Source as Kind
from perfproof.schema.run import Artifact, Inventory, Role

VERIFY_BY = "PERFPROOF_VERIFY_BY"
Params = dict[str, Any]
_CARD: Key = ("instance", "card")
_QUANTITIES = {
    "utilization": "rocm_utilization_percentage",
    "power": "rocm_average_socket_power_watts",
    "core_clock": "rocm_sclk_clock_mhz",
}
_LINKS = {
    "read": "rocm_xgmi_total_read_kilobytes",
    "write": "rocm_xgmi_total_write_kilobytes",
}
_TRAFFIC = {"send": "omnistat_network_tx_bytes", "receive": "omnistat_network_rx_bytes"}
_IN_USE = 0.01


@dataclass
class Evidence:
    """The run's telemetry, opened when a claim first needs it."""

    files: RunFiles
    closing: ExitStack = field(default_factory=ExitStack)
    by_query: bool = False
    _source: Source | None = None

    def source(self) -> Source:
        """Who answers. Raises `CannotSayError` where there is nothing to ask."""
        if self._source is None:
            self._source = self._open()
        return self._source

    def _open(self) -> Source:
        found = self.files.inventory.of(Role.TELEMETRY)
        exports = [one for one in found if _is_export(one)]
        first = next(iter([*exports, *found]), None)
        if first is None:
            raise CannotSayError("the run left no telemetry")
        path, window = self.files.path(first), steady(self.files)
        if not exports:
            return read_table(path, window)
        program = binary() if self.by_query else None
        if program is None:
            return read_lines(path, window)
        try:
            server = self.closing.enter_context(victoria(program))
            server.load(importable(path))
        except StoreError as fault:
            raise CannotSayError(str(fault)) from None
        return PromqlSource(server, window)


def _is_export(artifact: Artifact) -> bool:
    return artifact.path.removesuffix(".gz").endswith(".jsonl")


def verify(claims: Path, inventory: Inventory, by_query: bool = False) -> VerifiedSet:
    """Verdicts on the telemetry claims of a run, in the order of the claims."""
    with ExitStack() as closing:
        evidence = Evidence(RunFiles(inventory), closing, by_query)
        return verify_file(
            claims,
            inventory.run_id,
            Kind.TELEMETRY,
            lambda claim, metric: recompute(claim, metric, evidence),
        )


def recompute(claim: Claim, metric: Metric, evidence: Evidence) -> Recomputed:
    """The claim's number from raw samples. Raises `CannotSayError`."""
    source = evidence.source()
    try:
        found = RECOMPUTE[metric.name](source, claim.params, evidence.files)
    except StoreError as fault:
        raise CannotSayError(str(fault)) from None
    place = _place(claim.params)
    if found.samples < FEWEST_SAMPLES:
        raise CannotSayError(
            f"{found.samples} steady samples of {place}; expected {FEWEST_SAMPLES} or more"
        )
    limit = max(0.0, 1 - found.value) if metric.share is ShareRule.COMPLEMENT else None
    return Recomputed(
        found.value, limit, f"recomputed from {found.samples} samples of {place} by {source.how}"
    )


def _place(params: Params) -> str:
    node = f" of node {params['instance']}" if params.get("instance") else ""
    if "gpu" in params:
        return f"GPU {params['gpu']}{node}"
    if "interface" in params:
        return f"interface {params['interface']}{node}"
    return f"node {params['instance']}"


def _of_card(found: dict[Key, Stat], params: Params) -> Stat:
    """The card's; without a node in the claim, that of the only node that has such a card."""
    named = [
        stat
        for (instance, card), stat in sorted(found.items())
        if card == str(params["gpu"]) and params.get("instance", instance) == instance
    ]
    if len(named) != 1:
        many = f"{len(named)} cards match" if named else "no sample"
        raise CannotSayError(f"{many} of {_place(params)} in the steady window")
    return named[0]


def _of(found: dict[Key, Stat], key: Key) -> Stat:
    if key not in found:
        raise CannotSayError(f"no sample of {' '.join(key)} in the steady window")
    return found[key]


_Recompute = Callable[[Source, Params, RunFiles], Stat]


def _mean(metric: str, scale: float = 1.0, matchers: Matchers = ()) -> _Recompute:
    def mean(source: Source, params: Params, _files: RunFiles) -> Stat:
        found = _of_card(source.mean(metric, _CARD, matchers), params)
        return Stat(found.value * scale, found.samples)

    return mean


def _memory_share(source: Source, params: Params, files: RunFiles) -> Stat:
    capacity = _capacity(files)
    used = source.largest("perfproof_vram_used_bytes", _CARD)
    if used:
        found = _of_card(used, params)
        return Stat(found.value / capacity, found.samples)
    share = _of_card(source.largest("rocm_vram_used_percentage", _CARD), params)
    total = _of_card(source.largest("rocm_vram_total_bytes", _CARD), params)
    return Stat(share.value / 100 * total.value / capacity, share.samples)


def _capacity(files: RunFiles) -> int:
    """Bytes of device memory, from the manifest's device record."""
    path = files.optional(Role.MANIFEST)
    try:
        device = json.loads(path.read_text(encoding="utf-8"))["rank0"]["device"] if path else {}
        capacity = device.get("memory_bytes")
    except (ValueError, KeyError, TypeError, AttributeError):
        capacity = None
    if not isinstance(capacity, int) or capacity <= 0:
        raise CannotSayError("no device record says how much memory the GPU has")
    return capacity


def _card_below(source: Source, params: Params, _files: RunFiles) -> Stat:
    busy = {k for k, v in source.mean(_QUANTITIES["utilization"], _CARD).items() if v.value > 0}
    every = source.mean(_QUANTITIES[params["quantity"]], _CARD)
    used = {key: stat for key, stat in every.items() if key in busy} or every
    return _below(_of_card(used, params), used)


def _link_below(source: Source, params: Params, _files: RunFiles) -> Stat:
    used = {k: v for k, v in source.rate(_LINKS[params["direction"]], _CARD).items() if v.value > 0}
    return _below(_of_card(used, params), used)


def _interface_below(source: Source, params: Params, _files: RunFiles) -> Stat:
    every = source.rate(_TRAFFIC[params["direction"]], ("instance", "interface"))
    largest = max((stat.value for stat in every.values()), default=0.0)
    used = {key: stat for key, stat in every.items() if stat.value > _IN_USE * largest}
    return _below(_of(used, (params["instance"], params["interface"])), used)


def _below(mine: Stat, used: dict[Key, Stat]) -> Stat:
    median = statistics.median(stat.value for stat in used.values())
    if len(used) < 2 or median <= 0:
        raise CannotSayError("nothing to compare it with")
    return Stat(1 - mine.value / median, mine.samples)


def _host_cpu(source: Source, params: Params, _files: RunFiles) -> Stat:
    key = (params["instance"],)
    busy = _of(source.mean("omnistat_host_cpu_aggregate_core_utilization", ("instance",)), key)
    cores = _of(source.largest("omnistat_host_cpu_num_logical_cores", ("instance",)), key)
    return _ratio(busy, busy.value, cores.value)


def _host_memory(source: Source, params: Params, _files: RunFiles) -> Stat:
    key, by = (params["instance"],), ("instance",)
    total = source.mean("omnistat_host_mem_total_bytes", by)
    name = "omnistat_host_mem" if total else "omnistat_mem"
    whole = _of(source.mean(f"{name}_total_bytes", by), key)
    free = _of(source.mean(f"{name}_available_bytes", by), key)
    largest = _of(source.largest(f"{name}_total_bytes", by), key)
    return _ratio(whole, whole.value - free.value, largest.value)


def _ratio(of: Stat, part: float, whole: float) -> Stat:
    if whole <= 0:
        raise CannotSayError("its whole is not above zero")
    return Stat(part / whole, of.samples)


RECOMPUTE: dict[str, _Recompute] = {
    "gpu_utilization_mean": _mean("rocm_utilization_percentage", 0.01),
    "memory_busy_mean": _mean("rocm_vram_busy_percentage", 0.01),
    "power_throttle_fraction": _mean("perfproof_throttled", 1.0, (("reason", "power_cap"),)),
    "thermal_throttle_fraction": _mean("perfproof_throttled", 1.0, (("reason", "thermal"),)),
    "hbm_used_fraction": _memory_share,
    "card_below_median_fraction": _card_below,
    "link_below_median_fraction": _link_below,
    "interface_below_median_fraction": _interface_below,
    "host_cpu_busy_fraction": _host_cpu,
    "host_memory_used_fraction": _host_memory,
}


def main() -> None:
    """Command line."""
    by_query = os.environ.get(VERIFY_BY) == "promql"
    verifier_command(__doc__ or "", Kind.TELEMETRY, partial(verify, by_query=by_query))


if __name__ == "__main__":
    main()
