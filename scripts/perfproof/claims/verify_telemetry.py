"""Verify telemetry claims: recompute each from the raw samples and say what came out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from perfproof.claims.metrics_telemetry import POWER_CAP_BITS, THERMAL_BITS
from perfproof.claims.verifier.claim_file import verify_file
from perfproof.claims.verifier.command import verifier_command
from perfproof.claims.verifier.judge import Recomputed
from perfproof.claims.verifier.run_files import RunFiles
from perfproof.claims.verifier.scene import CannotSayError
from perfproof.claims.verifier.telemetry_raw import Sample, samples_by_gpu
from perfproof.claims.vocabulary import Metric, ShareRule
from perfproof.schema.claims import Claim, Source, VerifiedSet
from perfproof.schema.run import Inventory, Role

_MIB = 1024 * 1024


def verify(claims: Path, inventory: Inventory) -> VerifiedSet:
    """Verdicts on the telemetry claims of a run, in the order of the claims."""
    files = RunFiles(inventory)
    return verify_file(
        claims,
        inventory.run_id,
        Source.TELEMETRY,
        lambda claim, metric: recompute(claim, metric, files),
    )


def recompute(claim: Claim, metric: Metric, files: RunFiles) -> Recomputed:
    """The claim's number from raw samples. Raises `CannotSayError`."""
    gpu = claim.params["gpu"]
    rows = samples_by_gpu(files).get(gpu, [])
    if not rows:
        raise CannotSayError(f"no sample of GPU {gpu} in the steady window")
    value = RECOMPUTE[metric.name](rows, files)
    limit = max(0.0, 1 - value) if metric.share is ShareRule.COMPLEMENT else None
    return Recomputed(value, limit, f"recomputed from {len(rows)} samples of GPU {gpu}")


def _column(rows: list[Sample], name: str) -> list[float]:
    values = [row[name] for row in rows if name in row]
    if not values:
        raise CannotSayError(f"no sample of '{name}' in the steady window")
    return values


def _mean_percent(name: str) -> Callable[[list[Sample], RunFiles], float]:
    def mean(rows: list[Sample], _files: RunFiles) -> float:
        values = _column(rows, name)
        return sum(values) / len(values) / 100

    return mean


def _bit_share(bits: int) -> Callable[[list[Sample], RunFiles], float]:
    def share(rows: list[Sample], _files: RunFiles) -> float:
        values = _column(rows, "throttle_reasons")
        return sum(int(value) & bits != 0 for value in values) / len(values)

    return share


def _memory_share(rows: list[Sample], files: RunFiles) -> float:
    return max(_column(rows, "mem_used_mib")) * _MIB / _capacity(files)


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


RECOMPUTE: dict[str, Callable[[list[Sample], RunFiles], float]] = {
    "gpu_utilization_mean": _mean_percent("util_gpu_pct"),
    "memory_busy_mean": _mean_percent("util_mem_pct"),
    "power_throttle_fraction": _bit_share(POWER_CAP_BITS),
    "thermal_throttle_fraction": _bit_share(THERMAL_BITS),
    "hbm_used_fraction": _memory_share,
}


def main() -> None:
    """Command line."""
    verifier_command(__doc__ or "", Source.TELEMETRY, verify)


if __name__ == "__main__":
    main()
