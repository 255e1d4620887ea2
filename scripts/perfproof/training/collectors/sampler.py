"""Sample this node once an interval until told to end, or until whoever started it is gone.

Standard library and psutil only: it shares the node with what it measures. What it prints is
read by the launcher: `collecting on NODE: …` after the first sample, `collected on NODE: …` at the
end.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.training.collectors.amd import Amd
from perfproof.training.collectors.host import Host
from perfproof.training.collectors.job import Job
from perfproof.training.collectors.network import Network
from perfproof.training.collectors.nvidia import Nvidia
from perfproof.training.collectors.reading import AbsentError, Reading, Source
from perfproof.training.collectors.samples import SampleFile
from perfproof.training.nodes import host_name

# SIGUSR1 comes through srun, which takes the others for itself.
_ENDS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1})
# Training comes first where both want the same core.
_NICE = 10
# A last tick so soon after the one before would say little about the time between.
_SHORTEST_S = 0.1


@dataclass
class Sources:
    """What this node can be asked; what it cannot is kept with the reason."""

    present: dict[str, Source] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def add(self, name: str, opened: Callable[[], Source]) -> None:
        """Open a source."""
        try:
            self.present[name] = opened()
        except AbsentError as fault:
            self.absent.append(str(fault))

    def read(self) -> list[Reading]:
        """One tick of all. A source that fails costs only itself, and says so once."""
        return [reading for name in self.present for reading in self._of(name)]

    def _of(self, name: str) -> Iterator[Reading]:
        try:
            yield from self.present[name].read()
        except Exception as fault:
            if name not in self._told:
                self._told.add(name)
                print(f"{name}: {type(fault).__name__}: {fault}", file=sys.stderr, flush=True)


def sources(job: Job, env: Mapping[str, str]) -> Sources:
    """All that this node has."""
    found = Sources()
    found.add("job", lambda: job)
    found.add("host", Host)
    found.add("network", Network)
    found.add("nvidia", lambda: Nvidia(env))
    found.add("amd", Amd)
    return found


def sample(
    read: Callable[[], Sequence[Reading]],
    out: SampleFile,
    interval_s: float,
    wait: Callable[[float], bool],
    started: Callable[[], None],
) -> None:
    """Ticks at whole intervals from the first on, until `wait` (seconds) says that it is over.

    A tick that comes late does not move those after it; one that was missed is not made up for.
    """
    begun, number, last = time.monotonic(), 0, 0.0
    while True:
        last = time.monotonic()
        out.append(round(time.time() * 1000), read())
        if number == 0:
            started()
        passed = time.monotonic() - begun
        number = max(number + 1, math.ceil(passed / interval_s))
        if wait(max(0.0, number * interval_s - passed)):
            break
    if time.monotonic() - last >= _SHORTEST_S:
        out.append(round(time.time() * 1000), read())


def until_signal_or_orphaned(parent: int) -> Callable[[float], bool]:
    """A wait that is over by a signal to end, or when the parent is not the one it was."""

    def wait(seconds: float) -> bool:
        told = signal.sigtimedwait(_ENDS, seconds)
        return told is not None or os.getppid() != parent

    return wait


def main() -> None:
    """`python -m perfproof.training.collectors.sampler --out DIR …`."""
    parent = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    cli = argparse.ArgumentParser(description="Sample this node until told to end.")
    cli.add_argument("--out", type=Path, required=True, help="directory of the samples")
    cli.add_argument("--interval-s", type=float, default=1.0)
    cli.add_argument("--job-id", required=True, help="the run, as queries name it")
    cli.add_argument("--nodes", type=int, default=1, help="how many nodes the run has")
    arguments = cli.parse_args()
    os.nice(_NICE)
    node = host_name()
    kind = "slurm" if "SLURM_JOB_ID" in os.environ else "local"
    found = sources(Job(arguments.job_id, arguments.nodes, kind), os.environ)
    out = SampleFile(arguments.out / f"samples-{node}.jsonl", {"instance": node})
    told = f"{', '.join(found.present)}; without {'; '.join(found.absent) or 'nothing'}"
    sample(
        found.read,
        out,
        arguments.interval_s,
        until_signal_or_orphaned(parent),
        lambda: print(f"collecting on {node}: {told}", flush=True),
    )
    out.close()
    print(f"collected on {node}: {out.ticks} samples", flush=True)


if __name__ == "__main__":
    main()
