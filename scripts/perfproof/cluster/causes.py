"""Why a training command failed, from the end of its log and its exit code.

One rank's fault makes the others fail in a collective, so the more particular cause goes first and
a broken collective counts only when nothing else explains the end.
"""

from __future__ import annotations

import re

from perfproof.schema.cluster import Cause

_PATTERNS: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (
        Cause.DEVICE_MEMORY,
        re.compile(
            r"(CUDA|HIP) out of memory|OutOfMemoryError: |(CUDA|HIP) error: out of memory"
            r"|hipErrorOutOfMemory|cudaErrorMemoryAllocation|HSA_STATUS_ERROR_OUT_OF_RESOURCES"
            r"|(CUBLAS|HIPBLAS|CUDNN|MIOPEN)_STATUS_ALLOC_FAILED"
        ),
    ),
    (
        Cause.HOST_MEMORY,
        re.compile(
            r"oom[-_]kill|Out [Oo]f [Mm]emory: Killed|: Out Of Memory$|DefaultCPUAllocator: "
            r"(can't|not enough)|^(\S+: )?MemoryError|Cannot allocate memory|ENOMEM"
            r"|DataLoader worker \(pid.*killed by signal: (Killed|Bus error)"
            r"|exceeded (job|step) memory limit|Exceeded (job|step) memory limit"
        ),
    ),
    (
        Cause.RANKS_ALONE,
        re.compile(r"rank \d+ believes that it is one of \d+; expected \d+ ranks"),
    ),
    (
        Cause.DISK_FULL,
        re.compile(r"No space left on device|Disk quota exceeded|\b(ENOSPC|EDQUOT)\b"),
    ),
    (
        Cause.GPU_MEMORY_FAULT,
        re.compile(
            r"Memory access fault by GPU|illegal memory access|misaligned address"
            r"|HSA_STATUS_ERROR_(MEMORY_FAULT|MEMORY_APERTURE_VIOLATION|EXCEPTION)"
            r"|unspecified launch failure|(hip|cuda)Error(IllegalAddress|LaunchFailure)"
            r"|device-side assert triggered|NVRM: Xid"
        ),
    ),
)
_HANG = re.compile(
    r"perfproof: hang: |Watchdog caught collective operation timeout|monitoredBarrier.*time"
    r"|Timed out after \d+"
    r"|wait timeout after \d+ms|DistStoreError|Timeout waiting for key|Heartbeat monitor timed out"
)
_COLLECTIVE = re.compile(
    r"\b(NCCL|RCCL) error|ncclSystemError|ncclInternalError|ncclRemoteError|ncclUnhandled"
    r"|\bNCCL WARN .*(fail|error|closed|refused|retry exceeded)|DistBackendError"
    r"|Connection closed by (remote )?peer|transport retry counter exceeded"
    r"|got completion .*with (error|status)",
    re.IGNORECASE,
)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)")
# The exception's own line has no indentation, apart from a rank's prefix.
_EXCEPTION = re.compile(r"^(\[?\w*[rR]ank ?\d+\]?:? )?([A-Za-z_][\w.]*): |^\w*(Error|Exception)$")
_SUMMARY = re.compile(r"ChildFailedError|SignalException|KeyboardInterrupt")
_BY_EXIT_CODE = {134: Cause.ABORTED, 137: Cause.KILLED, 139: Cause.SEGMENTATION_FAULT}


def classify(tail: str, exit_code: int | None) -> tuple[Cause, str | None]:
    """The cause and the line of the log's `tail` that shows it, where one does."""
    lines = [line.rstrip() for line in tail.splitlines()]
    for cause, pattern in _PATTERNS:
        if line := _first(lines, pattern):
            return cause, line
    if line := _exception(lines):
        return Cause.EXCEPTION, line
    if line := _first(lines, _HANG):
        return Cause.HANG, line
    if line := _first(lines, _COLLECTIVE):
        return Cause.COLLECTIVE, line
    return _BY_EXIT_CODE.get(exit_code or 0, Cause.UNKNOWN), None


def _first(lines: list[str], pattern: re.Pattern[str]) -> str | None:
    return next((line.strip() for line in lines if pattern.search(line)), None)


def _exception(lines: list[str]) -> str | None:
    """The first exception of a traceback that is not the echo of another rank's end."""
    inside = False
    for line in lines:
        if _TRACEBACK.search(line):
            inside = True
        elif inside and _EXCEPTION.match(line):
            inside = False
            if not any(p.search(line) for p in (_SUMMARY, _HANG, _COLLECTIVE)):
                return line.strip()
    return None
