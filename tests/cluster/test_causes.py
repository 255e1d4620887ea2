"""Causes of failure, from lines as PyTorch, ROCm, CUDA, NCCL and SLURM print them."""

from __future__ import annotations

import pytest

from perfproof.cluster.causes import classify
from perfproof.schema.cluster import Cause

WATCHDOG = (
    "[rank1]:[E131 12:00:00.000 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 ms"
)
OUT_OF_MEMORY = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has"
ELASTIC = (
    "Traceback (most recent call last):\n"
    '  File "torchrun", line 8, in <module>\n    sys.exit(main())\n'
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
)
COLLECTIVE = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "train.py", line 3, in step\n'
    "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, remote "
    "process exited or there was a network error\n"
)


@pytest.mark.parametrize(
    ("tail", "exit_code", "cause", "evidence"),
    [
        (
            "step 3\nperfproof: hang: nothing written for 600 s; the run is ended\n",
            143,
            Cause.HANG,
            "perfproof: hang: nothing written",
        ),
        (
            "ValueError: x\nTraceback (most recent call last):\nValueError: a bad batch\n"
            "perfproof: hang: nothing written for 600 s; the run is ended\n",
            143,
            Cause.EXCEPTION,
            "ValueError: a bad batch",
        ),
        (f"step 3\n{OUT_OF_MEMORY}\n", 1, Cause.DEVICE_MEMORY, OUT_OF_MEMORY),
        ("RuntimeError: CUDA error: out of memory", 1, Cause.DEVICE_MEMORY, "RuntimeError: CUDA"),
        ("srun: error: a1: task 3: Out Of Memory", 1, Cause.HOST_MEMORY, "srun: error: a1: task 3"),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch. Some of the",
            137,
            Cause.HOST_MEMORY,
            "slurmstepd: error: Detected 1 oom_kill",
        ),
        (
            "RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.",
            1,
            Cause.HOST_MEMORY,
            "RuntimeError: DataLoader",
        ),
        (
            "Memory access fault by GPU node-2 (Agent handle: 0x5) on address 0x7. Reason: -.",
            134,
            Cause.GPU_MEMORY_FAULT,
            "Memory access fault by GPU node-2",
        ),
        (
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            1,
            Cause.GPU_MEMORY_FAULT,
            "RuntimeError: CUDA error",
        ),
        (
            "[rank3]: Traceback (most recent call last):\n[rank3]:   File x\n"
            "[rank3]: KeyError: 'energy'\n" + COLLECTIVE + WATCHDOG + "\n" + ELASTIC,
            1,
            Cause.EXCEPTION,
            "[rank3]: KeyError: 'energy'",
        ),
        (WATCHDOG + "\n" + ELASTIC, 1, Cause.HANG, "[rank1]:[E131"),
        (COLLECTIVE + ELASTIC, 1, Cause.COLLECTIVE, "[rank0]: torch.distributed.DistBackendError"),
        (
            "a1:1:2 [0] NCCL WARN socketProgress: Connection closed by remote peer a2<1234>",
            1,
            Cause.COLLECTIVE,
            "a1:1:2 [0] NCCL WARN",
        ),
        (OUT_OF_MEMORY + "\n" + WATCHDOG, 1, Cause.DEVICE_MEMORY, OUT_OF_MEMORY),
        (
            "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device: 'x'",
            1,
            Cause.DISK_FULL,
            "OSError: [Errno 28]",
        ),
        (
            "a2: environment: rank 0 believes that it is one of 1; expected 16 ranks, as",
            1,
            Cause.RANKS_ALONE,
            "a2: environment: rank 0",
        ),
        ("Fatal Python error: Aborted", 134, Cause.ABORTED, None),
        ("", 139, Cause.SEGMENTATION_FAULT, None),
        ("step 3\n", 137, Cause.KILLED, None),
        ("step 3 loss 0.1\n", 1, Cause.UNKNOWN, None),
        ("INFO: RCCL version 2.22.3 errors=0\n", None, Cause.UNKNOWN, None),
    ],
)
def test_cause(tail: str, exit_code: int | None, cause: Cause, evidence: str | None) -> None:
    found, line = classify(tail, exit_code)
    assert found is cause
    assert line == evidence if evidence is None else line and line.startswith(evidence)


def test_exception_without_message_is_seen() -> None:
    tail = "Traceback (most recent call last):\n  File x\n    f()\nAssertionError\n"
    assert classify(tail, 1) == (Cause.EXCEPTION, "AssertionError")
