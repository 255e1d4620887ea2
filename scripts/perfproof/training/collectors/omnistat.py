"""Hold Omnistat's user mode and its store for the time of a run.

Omnistat starts its exporters on all nodes and leaves them to themselves; this process stays, and
ends them when it is told to end or when whoever started it is gone. Like the sampler it prints
`collecting on NODE: …`, `failed on NODE: …` and `collected on NODE: …`.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from perfproof.core.files import write_text
from perfproof.core.series import Series, from_line, line, merged
from perfproof.core.victoria import StoreError, Victoria, free_port
from perfproof.training.collectors.loading import samples_of
from perfproof.training.collectors.omnistat_config import PREFERRED_PORTS, Setup, render
from perfproof.training.collectors.store import store
from perfproof.training.nodes import host_name

CONFIG = "omnistat.config"
_START_S = 300.0
# The launcher has a minute to close the run when the allocation ends.
_STOP_S = 40.0
_LOOK_S = 0.2
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_AVAILABLE = re.compile(r"(\d+) of (\d+) exporters available")
_MISSING = re.compile(r"Missing exporter on (\S+)")
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})


@dataclass(frozen=True)
class Hold:
    """What is to be held. `local`: this machine alone, no resource manager."""

    program: str
    store: Path
    folder: Path
    nodes: tuple[str, ...]
    job_id: str
    interval_s: float
    local: bool

    def words(self, action: str) -> list[str]:
        """The command line of one action."""
        words = [self.program, "--configfile", str(self.folder / CONFIG), action]
        # Exporters keep what they have sampled for one push interval: a minute is the shortest.
        words += ["--interval", f"{self.interval_s:g}", "--pushinterval", "1"]
        return [*words, "--localjob", self.job_id] if self.local else words


class Told:
    """Whether a signal to end has come. A mask would be inherited by all that is started here."""

    def __init__(self) -> None:
        """Take the signals from now on."""
        self.received = False
        for number in _ENDS:
            signal.signal(number, self._take)

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self.received = True


def failed_nodes(said: str, nodes: Sequence[str]) -> list[str]:
    """Nodes without an exporter, by what the start printed; it ends well also without them."""
    missing = set(_MISSING.findall(said))
    if missing:
        named = [node for node in nodes if node in missing or node.split(".")[0] in missing]
        return named or list(nodes)
    found = _AVAILABLE.search(said)
    return [] if found and found[1] == found[2] else list(nodes)


def environment(env: Mapping[str, str], hold: Hold) -> dict[str, str]:
    """What Omnistat needs to know of the job, which the executor removed; and no proxies."""
    kept = {name: value for name, value in env.items() if name.lower() not in _PROXIES}
    if hold.local:
        return kept
    nodes = {
        "SLURM_JOB_NODELIST": ",".join(hold.nodes),
        "SLURM_JOB_NUM_NODES": str(len(hold.nodes)),
    }
    return kept | {"SLURM_JOB_ID": hold.job_id} | nodes


def held(hold: Hold, setup: Setup, server: Victoria, told: Told, parent: int) -> int:
    """Start, wait, stop, and write the samples. The exit code."""
    write_text(hold.folder / CONFIG, render(setup))
    code, said = _run(hold, "--startexporters", _START_S)
    bad = failed_nodes(said, hold.nodes) if code == 0 else list(hold.nodes)
    for node in hold.nodes:
        where = f"port {setup.port}, store at {server.url}"
        print(
            f"failed on {node}: {_end(said)}" if node in bad else f"collecting on {node}: {where}"
        )
    sys.stdout.flush()
    if not bad:
        while not told.received and os.getppid() == parent:
            time.sleep(_LOOK_S)
    _run(hold, "--stopexporters", _STOP_S)
    server.flush()
    ticks = _write(hold.folder / "samples-omnistat.jsonl", merged(map(from_line, server.export())))
    for node in hold.nodes:
        print(f"collected on {node}: {samples_of(ticks, node)} samples", flush=True)
    return 1 if bad else 0


def _run(hold: Hold, action: str, limit_s: float) -> tuple[int | None, str]:
    """Run one action; its exit code (None: out of time) and what it printed, also into our log."""
    words = hold.words(action)
    try:
        done = subprocess.run(
            words,
            cwd=hold.folder,
            env=environment(os.environ, hold),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
        code, said = done.returncode, done.stdout
    except (OSError, subprocess.TimeoutExpired) as fault:
        code, said = None, str(fault)
    print(said, flush=True)
    return code, said


def _end(said: str) -> str:
    return " | ".join(said.split("\n")[-6:]).strip(" |")[-400:] or "it said nothing"


def _write(path: Path, series: Sequence[Series]) -> dict[str, int]:
    times: dict[str, set[int]] = {}
    for one in series:
        times.setdefault(one.metric.get("instance", ""), set()).update(one.times_ms)
    write_text(path, "".join(f"{line(one)}\n" for one in series))
    return {node: len(found) for node, found in times.items()}


def main() -> None:
    """`python -m perfproof.training.collectors.omnistat --out DIR …`."""
    parent = os.getppid()
    told = Told()
    cli = argparse.ArgumentParser(description="Hold Omnistat's user mode until told to end.")
    cli.add_argument("--out", type=Path, required=True, help="directory of the samples")
    cli.add_argument("--program", required=True, help="omnistat-usermode")
    cli.add_argument("--store", type=Path, required=True, help="program of the store")
    cli.add_argument("--node", action="append", required=True, dest="nodes")
    cli.add_argument("--job-id", required=True)
    cli.add_argument("--interval-s", type=float, default=1.0)
    cli.add_argument("--dtype", choices=("float64", "float32", "bfloat16"), required=True)
    cli.add_argument("--counters", action="store_true", help="sample hardware counters")
    cli.add_argument("--local", action="store_true", help="this machine, no resource manager")
    arguments = cli.parse_args()
    folder = arguments.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    hold = Hold(
        arguments.program,
        arguments.store,
        folder,
        tuple(arguments.nodes),
        arguments.job_id,
        arguments.interval_s,
        arguments.local,
    )
    try:
        sys.exit(_with_store(hold, arguments, told, parent))
    except (StoreError, OSError) as fault:
        for node in hold.nodes:
            print(f"failed on {node}: {fault}", flush=True)
        sys.exit(1)


def _with_store(hold: Hold, arguments: argparse.Namespace, told: Told, parent: int) -> int:
    with store(hold.store, hold.folder, other_hosts=not hold.local) as server:
        setup = Setup(
            folder=hold.folder,
            port=free_port(PREFERRED_PORTS),
            store_host="127.0.0.1" if hold.local else host_name(),
            store_port=int(server.url.rpartition(":")[2]),
            dtype=arguments.dtype,
            counters=arguments.counters,
            local=hold.local,
        )
        return held(hold, setup, server, told, parent)


if __name__ == "__main__":
    main()
