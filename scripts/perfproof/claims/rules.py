"""When a number becomes a claim: thresholds as data, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

# A start this soon after its launch means that nothing was queued.
EMPTY_QUEUE_US = 20.0


@dataclass(frozen=True)
class Rule:
    """A metric is claimed when its share of the step (else its value) is `least` or more.

    `at_most` limits the value; `needs` asks for a claim of that metric beside it; `keep` is how
    many claims of the metric may stand.
    """

    least: float
    why: str
    remedy: str | None
    at_most: float = float("inf")
    needs: str | None = None
    keep: int = 1


MOST_CLAIMS = 12

TRACE_RULES: dict[str, Rule] = {
    "gpu_idle_fraction": Rule(
        0.05,
        "a well-fed GPU idles a few percent between steps",
        "Feed the GPU: fewer and larger launches (compile, larger batch), less host work a step.",
    ),
    "host_late_idle_fraction": Rule(
        0.03,
        "below, launch cost hides behind running kernels",
        "Cut launches a step: torch.compile, CUDA or HIP graphs, fused optimizer, larger batch; "
        "remove synchronising calls.",
    ),
    "short_kernel_count_fraction": Rule(
        0.5,
        "only explains idle time, so only beside it",
        "Fuse short kernels (torch.compile) or enlarge the batch.",
        needs="host_late_idle_fraction",
    ),
    "launch_to_start_us": Rule(
        0.0,
        "a start this soon after the launch means an empty queue; only explains idle time",
        None,
        at_most=EMPTY_QUEUE_US,
        needs="host_late_idle_fraction",
    ),
    "exposed_comm_fraction": Rule(
        0.02,
        "below, overlapping communication better gains less than run-to-run noise",
        "Overlap communication with compute (prefetch, bucket sizes), send less (dtype, sharding), "
        "or check the network library's settings.",
    ),
    "collective_wait_fraction": Rule(
        0.02,
        "below, ranks are as even as collectives need",
        "Look at the rank that is waited for, not at the network: its data, its host, its clocks.",
    ),
    "kernel_group_fraction": Rule(
        0.05,
        "below, even an ideal kernel gains less than run-to-run noise",
        "Reduce the group's work: lower precision or better-suited shapes for compute, fusion for "
        "kernels that move memory.",
        keep=4,
    ),
    "top_kernel_fraction": Rule(
        0.08,
        "a single kernel is worth a look of its own from here",
        "Check shapes, layout and library choice of this kernel; tune or replace it.",
        keep=3,
    ),
    "exposed_memcpy_fraction": Rule(
        0.01,
        "copies are cheap to hide, so that one percent is worth the change",
        "Pinned host memory and non_blocking copies on a side stream; keep data on the device; "
        "avoid .item() and .cpu() in the step.",
        keep=3,
    ),
    "dataloader_fraction": Rule(
        0.02,
        "below, the loader keeps up",
        "More loader workers, persistent workers, prefetch, cheaper transforms.",
    ),
    "dataloader_gpu_idle_fraction": Rule(
        0.01,
        "the GPU waits for data; workers are cheap to add",
        "More loader workers, persistent workers, prefetch, cheaper transforms.",
    ),
    "runtime_call_fraction": Rule(
        0.03,
        "below, blocking calls do not shape the step",
        "Remove synchronisation from the step, keep the caching allocator on, avoid "
        "empty_cache and allocations that grow.",
        keep=2,
    ),
    "cpu_op_self_fraction": Rule(
        0.05,
        "below, even removing the operator gains less than run-to-run noise",
        "Fuse or batch the operator, use a faster kernel or more threads for it.",
        keep=4,
    ),
}

TELEMETRY_RULES: dict[str, Rule] = {
    "gpu_utilization_mean": Rule(
        0.1,
        "a well-fed GPU shows at least nine tenths; the counter is coarse",
        "Feed the GPU: larger batch, more loader workers, fewer launches.",
    ),
    "memory_busy_mean": Rule(
        0.5,
        "memory that is busy half of the time limits kernels that stream through it",
        "Fuse kernels that move memory; lower precision.",
    ),
    "power_throttle_fraction": Rule(
        0.1,
        "an occasional sample at the cap costs nothing",
        None,
    ),
    "thermal_throttle_fraction": Rule(
        0.01,
        "a cooled GPU never throttles on temperature",
        "Check cooling; exclude the node.",
    ),
    "hbm_used_fraction": Rule(
        0.9,
        "little memory is left for a larger batch, and fragmentation may cause retries",
        "Activation checkpointing or sharding before a larger batch.",
    ),
    "card_below_median_fraction": Rule(
        0.1,
        "cards of one job do the same work; a tenth less of anything is no chance",
        "Look at this card and its rank: clocks, cooling, data, processor affinity; exclude the "
        "node where the card is at fault.",
        keep=3,
    ),
    "link_below_median_fraction": Rule(
        0.3,
        "collectives load the links of all cards alike",
        "Check the links of this card and the ring order of the communication library.",
        keep=2,
    ),
    "interface_below_median_fraction": Rule(
        0.3,
        "a communication library spreads its traffic evenly over interfaces",
        "Check this interface, its cable and which interfaces the library was told to use.",
        keep=2,
    ),
    "host_cpu_busy_fraction": Rule(
        0.8,
        "with most cores busy, loader and launching threads wait for each other",
        "Fewer loader workers or threads a rank; bind ranks to cores.",
    ),
    "host_memory_used_fraction": Rule(
        0.9,
        "close to full, the kernel reclaims pages while training runs",
        "Less data in memory a rank: fewer workers, less prefetch, shared memory maps.",
    ),
}

# Calls that block the host or the device. Launches and their argument queries do not.
BLOCKING_CALL_REGEX = (
    r"(cuda|hip|cu)(Malloc|Free|HostAlloc|HostRegister|Memcpy|Memset|MemAlloc|MemFree|MemCreate"
    r"|MemMap|MemUnmap|\w*Synchronize|ModuleLoad|LibraryLoad|DeviceReset|CtxSynchronize)"
)
