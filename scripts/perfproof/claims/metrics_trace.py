"""The metrics of a profiler trace. W, G, compute, comm and memcpy are defined in `metrics_doc`."""

from __future__ import annotations

from perfproof.claims.vocabulary import ClassRule, Metric, Param, ShareRule, always
from perfproof.schema.claims import BottleneckClass, Source

COMM_NAME_REGEX = (
    r"nccl|rccl|cross_device_reduce|multimem_all_reduce|two_shot_all_reduce|one_shot_all_reduce"
    r"|all_reduce_kernel|mscclpp|deep_ep|nvshmem"
)
MEMCPY_KERNEL_REGEX = r"^(__amd_rocclr_copyBuffer|MEMORY_COPY_|Memcpy )"
SHORT_KERNEL_US = 10.0
COMPUTE_GROUPS = ("gemm", "attention", "convolution")

_TOPOLOGY = ClassRule(
    "topology",
    {"intra_node": BottleneckClass.COMM_XGMI, "inter_node": BottleneckClass.COMM_SCALEOUT},
)
_TOPOLOGY_PARAMS = (
    Param(
        "topology",
        "str",
        "`intra_node` when every process group fits one node, else `inter_node`",
        ("intra_node", "inter_node"),
    ),
    Param("decided_by", "str", "the record that says so"),
)
_KERNEL_CLASS = ClassRule(
    "group",
    dict.fromkeys(COMPUTE_GROUPS, BottleneckClass.GPU_COMPUTE),
    BottleneckClass.GPU_MEMORY_HBM,
)
_COPY_CLASS = ClassRule(
    "direction",
    {
        "HtoD": BottleneckClass.HOST_IO,
        "DtoH": BottleneckClass.HOST_IO,
        "DtoD": BottleneckClass.GPU_MEMORY_HBM,
        "PtoP": BottleneckClass.COMM_XGMI,
    },
)


def _metric(
    name: str,
    definition: str,
    formula: str,
    table: str,
    class_rule: ClassRule,
    share: ShareRule = ShareRule.ALONE,
    params: tuple[Param, ...] = (),
    unit: str = "fraction",
    absolute: float = 0.002,
    relative: float = 0.01,
) -> Metric:
    return Metric(
        name, Source.TRACE, unit, "rank", definition, formula, table, class_rule, share,
        absolute, relative, params,
    )  # fmt: skip


_DISPATCH = always(BottleneckClass.CPU_DISPATCH)
_LOADER = always(BottleneckClass.DATALOADER)
_HOST = always(BottleneckClass.HOST_CPU)

TRACE_METRICS: tuple[Metric, ...] = (
    _metric(
        "gpu_idle_fraction",
        "Share of W in which no GPU event of G runs.",
        "1 - |union(G)| / |W|",
        "window_timeline.csv",
        _DISPATCH,
        ShareRule.IDLE,
    ),
    _metric(
        "host_late_idle_fraction",
        "Share of W in idle gaps that end with an event whose launch call began only after the gap "
        "had begun: the GPU had nothing queued and waited for the host.",
        "sum of gaps with launch.start >= gap.start / |W|",
        "idle.csv",
        _DISPATCH,
        ShareRule.IDLE,
    ),
    _metric(
        "short_kernel_count_fraction",
        f"Share of the kernels of G that run for less than {SHORT_KERNEL_US:g} µs, the order of "
        "the cost of one launch.",
        f"count(kernels shorter than {SHORT_KERNEL_US:g} µs) / count(kernels)",
        "launch_stats.csv",
        _DISPATCH,
        ShareRule.NONE,
    ),
    _metric(
        "launch_to_start_us",
        "Time from the start of the launch call to the start of its GPU event, over linked events "
        "of G; a few µs mean an empty queue. Linear interpolation between order statistics.",
        "quantile(event.start - launch.start)",
        "launch_stats.csv",
        _DISPATCH,
        ShareRule.NONE,
        (Param("quantile", "float", "between 0 and 1"),),
        unit="µs",
        absolute=0.1,
        relative=0.01,
    ),
    _metric(
        "exposed_comm_fraction",
        "Share of W in which communication kernels run and no compute does. Waiting for a late "
        "rank is part of it.",
        "|union(comm) - union(compute)| / |W|",
        "window_timeline.csv",
        _TOPOLOGY,
        params=_TOPOLOGY_PARAMS,
    ),
    _metric(
        "collective_wait_fraction",
        "Share of W that the rank spends in collectives beyond the fastest rank's time in the same "
        "collective (matched by process group and order): waiting for others. The cause lies with "
        "the rank that waits least.",
        "sum over collectives of (own duration - least duration over ranks) / |W|",
        "collective_wait.csv",
        _TOPOLOGY,
        params=(*_TOPOLOGY_PARAMS, Param("straggler", "int", "the rank that waits least")),
        relative=0.02,
    ),
    _metric(
        "kernel_group_fraction",
        "Share of W in which a kernel of the group runs. The group is what the two regexes select, "
        "case-insensitively, among kernels that are neither comm nor memcpy.",
        "|union(k: search(name_regex, k) and not search(not_regex, k))| / |W|",
        "kernel_groups.csv",
        _KERNEL_CLASS,
        params=(
            Param("group", "str", "name of the group"),
            Param("name_regex", "regex", "selects"),
            Param("not_regex", "regex", "deselects; empty: nothing"),
        ),
    ),
    _metric(
        "top_kernel_fraction",
        "Share of W in which kernels of exactly this name run.",
        "|union(k: name(k) = kernel)| / |W|",
        "top_kernels.csv",
        _KERNEL_CLASS,
        params=(
            Param("kernel", "str", "full name, as in the trace"),
            Param("group", "str", "group of the kernel"),
        ),
    ),
    _metric(
        "exposed_memcpy_fraction",
        "Share of W in which copies of one direction run and neither compute nor communication.",
        "|union(copies) - union(compute) - union(comm)| / |W|",
        "memcpy.csv",
        _COPY_CLASS,
        params=(
            Param("direction", "str", "of the copy", ("HtoD", "DtoH", "DtoD", "PtoP")),
        ),
    ),
    _metric(
        "dataloader_fraction",
        "Share of W that the training thread spends in the data loader's `__next__`.",
        "|union(enumerate(DataLoader) annotations)| / |W|",
        "dataloader.csv",
        _LOADER,
        ShareRule.LOADER,
    ),
    _metric(
        "dataloader_gpu_idle_fraction",
        "Share of W in which the training thread is in the data loader and no GPU event runs.",
        "|union(enumerate(DataLoader) annotations) - union(G)| / |W|",
        "dataloader.csv",
        _LOADER,
        ShareRule.LOADER,
    ),
    _metric(
        "runtime_call_fraction",
        "Share of W in which at least one thread is inside this CUDA or HIP call (allocation, "
        "release, synchronisation, copies that block).",
        "|union(calls of that name)| / |W|",
        "runtime_calls.csv",
        _HOST,
        ShareRule.IDLE,
        (Param("call", "str", "name of the runtime or driver call"),),
    ),
    _metric(
        "cpu_op_self_fraction",
        "Share of W in which the training or a backward thread is in this operator itself, not in "
        "an operator that it calls.",
        "|union over threads of (op - its direct children)| / |W|",
        "cpu_ops.csv",
        _HOST,
        ShareRule.IDLE,
        (Param("op", "str", "name of the CPU operator"),),
    ),
)  # fmt: skip
