"""CPU, memory and disks of this node."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import psutil

from perfproof.training.collectors.reading import Labels, Reading, readings

# Whole disks as the kernel names them: a partition's bytes are its disk's too.
_DISK = re.compile(r"^(sd[a-z]+|vd[a-z]+|xvd[a-z]+|hd[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+)$")
# Idle, waiting for a disk, and what the kernel counts a second time as user or nice time.
_NOT_BUSY = ("idle", "iowait")
_TWICE = ("guest", "guest_nice")


class Host:
    """Cores busy between two readings; memory and disk as they stand."""

    def __init__(self) -> None:
        """Take the first look at the cores: busy is a difference."""
        self._cores = psutil.cpu_times(percpu=True)
        self._constant = tuple(
            readings(
                (),
                omnistat_host_cpu_num_logical_cores=psutil.cpu_count(),
                omnistat_host_cpu_num_physical_cores=psutil.cpu_count(logical=False),
            )
        )

    def read(self) -> Iterator[Reading]:
        """One reading."""
        yield from self._constant
        yield from self._busy()
        one, five, fifteen = os.getloadavg()
        memory = psutil.virtual_memory()
        yield from readings(
            (),
            omnistat_host_cpu_load1=one,
            omnistat_host_cpu_load5=five,
            omnistat_host_cpu_load15=fifteen,
            omnistat_host_mem_total_bytes=memory.total,
            omnistat_host_mem_available_bytes=memory.available,
            omnistat_host_mem_free_bytes=memory.free,
        )
        yield from _disks()

    def _busy(self) -> Iterator[Reading]:
        before, self._cores = self._cores, psutil.cpu_times(percpu=True)
        if len(before) != len(self._cores):
            return
        shares = [_share(old, new) for old, new in zip(before, self._cores, strict=True)]
        known = [share for share in shares if share is not None]
        for number, share in enumerate(shares):
            labels: Labels = (("core", str(number)),)
            yield from readings(labels, omnistat_host_cpu_core_utilization=share)
        if known:
            yield from readings((), omnistat_host_cpu_aggregate_core_utilization=sum(known))


def _share(old: Any, new: Any) -> float | None:
    """Busy share of the time between two looks at a core; None when no time has passed."""
    passed = {name: getattr(new, name) - getattr(old, name) for name in new._fields}
    total = sum(seconds for name, seconds in passed.items() if name not in _TWICE)
    if total <= 0:
        return None
    busy = total - sum(passed.get(name, 0.0) for name in _NOT_BUSY)
    return min(1.0, max(0.0, float(busy / total)))


def _disks() -> Iterator[Reading]:
    found = psutil.disk_io_counters(perdisk=True) or {}
    disks = {name: counters for name, counters in found.items() if _DISK.match(name)}
    for name, counters in sorted(disks.items()):
        yield from readings(
            (("device", name),),
            omnistat_host_disk_read_bytes=counters.read_bytes,
            omnistat_host_disk_written_bytes=counters.write_bytes,
        )
    if disks:
        yield from readings(
            (),
            omnistat_host_io_read_local_total_bytes=sum(d.read_bytes for d in disks.values()),
            omnistat_host_io_write_local_total_bytes=sum(d.write_bytes for d in disks.values()),
        )
