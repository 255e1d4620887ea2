"""The query registry: every number that the analysis takes from telemetry."""

from __future__ import annotations

from perfproof.telemetry.names import THROTTLED, USED_BYTES
from perfproof.telemetry.registry import Across, Entity, Factor, Over, Query, Term

# Matrix counters of MI200 and MI300 tick once every 512 operations (ROCm documentation, MI300 and
# MI200 series performance counters: SQ_INSTS_VALU_MFMA_MOPS_*).
_MOPS = Factor(512, "FLOP/mops", "a count is 512 operations")
# Vector counters tick once an instruction of a wave of 64 lanes.
_LANES = Factor(64, "lane/instruction", "lanes of a wave")
_ONE, _TWO = Factor(1, "FLOP/lane"), Factor(2, "FLOP/lane", "a fused multiply-add is two")
_TERA = Factor(1e-12, "TFLOP/FLOP")
_GIGA = Factor(1e-9, "GB/B")
_COUNTER = "omnistat_hardware_counter"


def _counter(name: str, unit: str, *factors: Factor) -> Term:
    return Term(_COUNTER, unit, factors, (("name", name),))


def _gauge(
    name: str, meaning: str, metric: str, unit: str, over: Over = Over.MEAN, **labels: str
) -> Query:
    across: Across = "max" if over is Over.MAX else "mean"
    matchers = tuple(sorted(labels.items()))
    return Query(name, meaning, over, (Term(metric, unit, (), matchers),), unit, "card", across)


def _rates(
    name: str, meaning: str, unit: str, *terms: Term, entity: Entity = "card"
) -> tuple[Query, Query]:
    """The time-averaged rate and the burst of the same counters: two figures, never compared."""
    across: Across = "sum" if entity == "interface" else "mean"
    return (
        Query(f"{name}_average", f"{meaning}, time-averaged", Over.RATE, terms, unit, entity,
              across, 2),
        Query(f"{name}_burst", f"{meaning}, burst", Over.BURST, terms, unit, entity, "max", 2),
    )  # fmt: skip


def _matrix(dtype: str, counter: str) -> tuple[Query, Query]:
    term = _counter(f"SQ_INSTS_VALU_MFMA_MOPS_{counter}", "mops", _MOPS, _TERA)
    return _rates(f"matrix_{dtype}", f"{dtype} operations of the matrix units", "TFLOP/s", term)


def _vector_fp64(kind: str, factor: Factor) -> Term:
    return _counter(f"SQ_INSTS_VALU_{kind}_F64", "instruction", _LANES, factor, _TERA)


def _throttled(reason: str, meaning: str) -> Query:
    name = f"throttled_{reason}_fraction"
    return _gauge(name, f"share of samples: {meaning}", THROTTLED, "1", reason=reason)


_CARD: tuple[Query, ...] = (
    _gauge("gpu_utilization", "share of time with a kernel running",
           "rocm_utilization_percentage", "%"),
    _gauge("memory_busy", "share of time in which device memory was read or written",
           "rocm_vram_busy_percentage", "%"),
    _gauge("memory_used", "device memory in use", USED_BYTES, "B", Over.MAX),
    _gauge("memory_used_share", "device memory in use over its capacity",
           "rocm_vram_used_percentage", "%", Over.MAX),
    _gauge("power", "power of a card", "rocm_average_socket_power_watts", "W"),
    Query("power_total", "power of all sampled cards", Over.MEAN,
          (Term("rocm_average_socket_power_watts", "W"),), "W", "card", "sum"),
    Query("energy", "energy of all sampled cards in steady time, by their counters", Over.INCREASE,
          (Term("rocm_energy_joules", "J"),), "J", "card", "sum", 2),
    _gauge("core_clock", "clock of the compute units", "rocm_sclk_clock_mhz", "MHz"),
    _gauge("memory_clock", "clock of the device memory", "rocm_mclk_clock_mhz", "MHz"),
    _gauge("temperature", "temperature, hottest place",
           "rocm_temperature_celsius", "C", Over.MAX),
    _gauge("memory_temperature", "temperature of the device memory, hottest place",
           "rocm_temperature_memory_celsius", "C", Over.MAX),
    _throttled("power_cap", "clocks held down by the power cap, which is no fault"),
    _throttled("thermal", "clocks held down by temperature"),
    _throttled("hardware_slowdown", "clocks held down by the hardware"),
    _throttled("power_brake", "clocks held down by an external power brake"),
)  # fmt: skip
_COUNTERS: tuple[Query, ...] = (
    *_matrix("fp64", "F64"), *_matrix("fp32", "F32"), *_matrix("fp16", "F16"),
    *_matrix("bf16", "BF16"),
    *_rates("fp64", "fp64 operations of matrix and vector units", "TFLOP/s",
            _counter("SQ_INSTS_VALU_MFMA_MOPS_F64", "mops", _MOPS, _TERA),
            _vector_fp64("FMA", _TWO), _vector_fp64("ADD", _ONE), _vector_fp64("MUL", _ONE)),
    *_rates("hbm_read", "device memory read", "GB/s",
            _counter("FETCH_SIZE", "KiB", Factor(1024, "B/KiB"), _GIGA)),
    *_rates("hbm_write", "device memory written", "GB/s",
            _counter("WRITE_SIZE", "KiB", Factor(1024, "B/KiB"), _GIGA)),
)  # fmt: skip
_KILO = Factor(1000, "B/kB", "the device library counts kB")
_LINKS: tuple[Query, ...] = (
    *_rates("link_read", "read over the links between the GPUs of a node", "GB/s",
            Term("rocm_xgmi_total_read_kilobytes", "kB", (_KILO, _GIGA))),
    *_rates("link_write", "written over the links between the GPUs of a node", "GB/s",
            Term("rocm_xgmi_total_write_kilobytes", "kB", (_KILO, _GIGA))),
    *_rates("network_send", "sent by a network interface", "GB/s",
            Term("omnistat_network_tx_bytes", "B", (_GIGA,)), entity="interface"),
    *_rates("network_receive", "received by a network interface", "GB/s",
            Term("omnistat_network_rx_bytes", "B", (_GIGA,)), entity="interface"),
)  # fmt: skip
_HOST: tuple[Query, ...] = (
    Query("host_cpu_busy", "busy processor cores of a node", Over.MEAN,
          (Term("omnistat_host_cpu_aggregate_core_utilization", "core"),), "core", "node"),
    Query("host_cpu_cores", "logical processor cores of a node", Over.MAX,
          (Term("omnistat_host_cpu_num_logical_cores", "core"),), "core", "node", "max"),
    Query("host_memory_used", "memory of a node that is not available", Over.MEAN,
          (Term("omnistat_host_mem_total_bytes", "B"),
           Term("omnistat_host_mem_available_bytes", "B", (Factor(-1, "1"),))), "B", "node"),
    Query("host_memory_total", "memory of a node", Over.MAX,
          (Term("omnistat_host_mem_total_bytes", "B"),), "B", "node", "max"),
)  # fmt: skip

QUERIES: dict[str, Query] = {query.id: query for query in (*_CARD, *_COUNTERS, *_LINKS, *_HOST)}


def metric_names() -> frozenset[str]:
    """Every metric that a query reads."""
    return frozenset(term.metric for query in QUERIES.values() for term in query.terms)
