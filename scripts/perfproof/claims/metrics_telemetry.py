"""The metrics of device telemetry. The steady window is defined in `metrics_doc`."""

from __future__ import annotations

from perfproof.claims.vocabulary import ClassRule, Metric, Param, ShareRule, always
from perfproof.schema.claims import BottleneckClass, Source

# Bits of nvmlDeviceGetCurrentClocksEventReasons (NVML API reference, nvmlClocksEventReasons).
POWER_CAP_BITS = 0x04
THERMAL_BITS = 0x20 | 0x40

_GPU = (Param("gpu", "int", "index of the GPU in the telemetry"),)


def _metric(
    name: str,
    definition: str,
    formula: str,
    class_rule: ClassRule,
    share: ShareRule,
    params: tuple[Param, ...] = _GPU,
    absolute: float = 0.005,
) -> Metric:
    return Metric(
        name, Source.TELEMETRY, "fraction", "gpu", definition, formula,
        "telemetry_summary.json", class_rule, share, absolute, 0.01, params,
    )  # fmt: skip


TELEMETRY_METRICS: tuple[Metric, ...] = (
    _metric(
        "gpu_utilization_mean",
        "Mean of the utilization counter: the share of time in which at least one kernel ran. It "
        "says nothing about how well the kernel used the GPU.",
        "mean(util_gpu_pct) / 100",
        always(BottleneckClass.CPU_DISPATCH),
        ShareRule.COMPLEMENT,
    ),
    _metric(
        "memory_busy_mean",
        "Mean share of time in which device memory was read or written.",
        "mean(util_mem_pct) / 100",
        always(BottleneckClass.GPU_MEMORY_HBM),
        ShareRule.NONE,
    ),
    _metric(
        "power_throttle_fraction",
        "Share of samples in which the software power cap held the clocks down.",
        f"count(throttle_reasons & {POWER_CAP_BITS:#04x}) / count(samples)",
        always(BottleneckClass.GPU_COMPUTE),
        ShareRule.NONE,
    ),
    _metric(
        "thermal_throttle_fraction",
        "Share of samples in which temperature held the clocks down.",
        f"count(throttle_reasons & {THERMAL_BITS:#04x}) / count(samples)",
        always(BottleneckClass.GPU_COMPUTE),
        ShareRule.NONE,
    ),
    _metric(
        "hbm_used_fraction",
        "Largest device memory in use, all processes, over the capacity in the run's device "
        "record.",
        "max(mem_used) / capacity",
        always(BottleneckClass.GPU_MEMORY_HBM),
        ShareRule.NONE,
    ),
)
