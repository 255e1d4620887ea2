"""Processes by pid file: whether they live, waiting for them, ending them. Every wait ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import psutil

_POLL_S = 0.05


def wait_until(done: Callable[[], bool], limit_s: float, what: str) -> None:
    """Poll `done` until it holds; `TimeoutError` naming `what` after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {limit_s:.0f} s")
        time.sleep(_POLL_S)


def command(argv: Sequence[str], env: Mapping[str, str], limit_s: float = 30.0) -> str:
    """Standard output of a command; `RuntimeError` with its words when it fails."""
    done = subprocess.run(
        argv,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit_s,
    )
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())
        raise RuntimeError(f"{' '.join(argv)}: exit code {done.returncode}: {words}")
    return done.stdout


def process_of(pid_file: Path, root: Path) -> psutil.Process | None:
    """The live process a pid file names, if it is one of the cluster at `root`.

    A pid file may be older than the last boot: the number alone could be any process by now.
    """
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int(pid_file.read_text()))
        if running(process) and _belongs(process, root):
            return process
    return None


def running(process: psutil.Process) -> bool:
    """Whether it still executes: a dead daemon stays a zombie until its parent reaps it."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _belongs(process: psutil.Process, root: Path) -> bool:
    words = [*process.cmdline(), process.environ().get("SLURM_CONF", "")]
    return any(str(root) in word for word in words)


def step_daemons(spool: Path) -> list[psutil.Process]:
    """The slurmstepd processes whose sockets lie below `spool`; they outlive their slurmd."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name().startswith("slurmstepd") and any(
                Path(str(connection.laddr)).is_relative_to(spool)
                for connection in process.net_connections(kind="unix")
            ):
                found.append(process)
    return found


def with_children(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """The processes and everything they started that still hangs on them."""
    family: dict[int, psutil.Process] = {}
    for process in processes:
        with contextlib.suppress(psutil.Error):
            family |= {p.pid: p for p in [process, *process.children(recursive=True)]}
    return list(family.values())


def kill(processes: Iterable[psutil.Process]) -> None:
    """End the processes at once and wait until they are gone."""
    doomed = list(processes)
    for process in doomed:
        with contextlib.suppress(psutil.Error):
            process.kill()
    wait_until(lambda: not any(map(running, doomed)), 10, "killed processes")


def stop(pid_file: Path, root: Path, limit_s: float = 10.0) -> None:
    """Ask the pid file's process to end; kill it when it does not within `limit_s`."""
    process = process_of(pid_file, root)
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: not running(process), limit_s, str(pid_file))
        kill([process] if running(process) else [])
    pid_file.unlink(missing_ok=True)
