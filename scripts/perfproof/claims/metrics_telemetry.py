"""The metrics of device telemetry. The steady window is defined in `metrics_doc`."""

from __future__ import annotations

from perfproof.claims.vocabulary import ClassRule, Metric, Param, ShareRule, always
from perfproof.schema.claims import BottleneckClass, Source

# Bits of nvmlDeviceGetCurrentClocksEventReasons (NVML API reference, nvmlClocksEventReasons).
POWER_CAP_BITS = 0x04
THERMAL_BITS = 0x20 | 0x40

_NODE = Param("instance", "str", "node, as the telemetry names it")
_NODE_OF = Param("instance", "str", _NODE.meaning, optional=True)
_GPU = (Param("gpu", "int", "index of the GPU in the telemetry"), _NODE_OF)
QUANTITIES = ("utilization", "power", "core_clock")
DIRECTIONS = ("read", "write")
TRAFFIC = ("send", "receive")
FEWEST_SAMPLES = 5


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
    _metric(
        "card_below_median_fraction",
        "How far the mean of one card lies below the median of the cards in use: an outlier that "
        "a mean over cards hides. Cards in use are those with a utilization above zero, or all.",
        "1 - mean(card) / median(means of the cards in use)",
        always(BottleneckClass.GPU_COMPUTE),
        ShareRule.NONE,
        (*_GPU, Param("quantity", "str", "what is compared", QUANTITIES)),
    ),
    _metric(
        "link_below_median_fraction",
        "How far the rate over the links of one card lies below the median of the cards.",
        "1 - rate(card) / median(rates of all cards)",
        always(BottleneckClass.COMM_XGMI),
        ShareRule.NONE,
        (*_GPU, Param("direction", "str", "of the traffic", DIRECTIONS)),
    ),
    _metric(
        "interface_below_median_fraction",
        "How far the rate of one network interface lies below the median of the interfaces that "
        "carry at least a hundredth of what the busiest one does.",
        "1 - rate(interface) / median(rates of the interfaces in use)",
        always(BottleneckClass.COMM_SCALEOUT),
        ShareRule.NONE,
        (_NODE, Param("interface", "str", "its name"),
         Param("direction", "str", "of the traffic", TRAFFIC)),
    ),
    _metric(
        "host_cpu_busy_fraction",
        "Busy processor cores of a node over all of its logical cores.",
        "mean(busy cores) / max(logical cores)",
        always(BottleneckClass.HOST_CPU),
        ShareRule.NONE,
        (_NODE,),
    ),
    _metric(
        "host_memory_used_fraction",
        "Memory of a node that is not available over all of it.",
        "mean(total - available) / max(total)",
        always(BottleneckClass.HOST_CPU),
        ShareRule.NONE,
        (_NODE,),
    ),
)  # fmt: skip
