"""One Snakemake process under test: a deadline on every wait, and no job left behind."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.cluster.processes import wait_until
from tests.cluster.testbed import Testbed

_ROOT = Path(__file__).resolve().parents[2]


class SnakemakeRun:
    """Start with `start`, then wait for what its log says or for its end."""

    def __init__(self, cluster: Testbed, directory: Path) -> None:
        """Nothing runs yet."""
        self.cluster, self.directory = cluster, directory
        self._prefix = f"test-{secrets.token_hex(4)}"
        self._log = directory / "snakemake.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._command: list[str] = []
        path = f"{Path(sys.executable).parent}:{cluster.env['PATH']}"
        self.env = cluster.env | {"PYTHONPATH": f"{_ROOT}/scripts:{_ROOT}", "PATH": path}

    def start(self, snakefile: str, *options: str, executor: str = "slurm-bounded") -> None:
        """Start Snakemake on this Snakefile's first rule; it submits to the cluster."""
        (self.directory / "Snakefile").write_text(snakefile)
        self._command = [sys.executable, "-m", "snakemake", *self._options(executor), *options]
        self._spawn(self._command)

    def resume(self, *options: str, then: Sequence[str] = ()) -> None:
        """Start it again, with options added, by the command for after an interruption."""
        resume = [sys.executable, "-m", "perfproof.cluster.resume", "--prefix", self._prefix]
        self._spawn([*resume, "--latency-s=0", *options, "--", *self._command, *then])

    def _spawn(self, argv: list[str]) -> None:
        with self._log.open("wb") as stream:
            self._process = subprocess.Popen(
                argv,
                cwd=self.directory,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _options(self, executor: str) -> list[str]:
        return [
            *("--executor", executor, "--jobs", "4", "--latency-wait", "5"),
            *("--default-resources", "slurm_partition=batch", "runtime=10", "mem_mb=500"),
            *(f"--{executor}-jobname-prefix", self._prefix, f"--{executor}-no-requeue"),
            *(f"--{executor}-delete-logfiles-older-than", "0"),
        ]

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(errors="replace")

    def wait(self, limit_s: float) -> int:
        """Its exit code; `TimeoutError` with its log when it has not ended in time."""
        assert self._process is not None
        try:
            return self._process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"Snakemake still runs after {limit_s} s:\n{self.log}") from None

    def wait_job(self, *states: str, limit_s: float = 30.0) -> str:
        """Wait until one of its jobs is in one of the states; the job's id."""
        found: list[str] = []

        def seen() -> bool:
            assert self.runs(), self.log
            found[:] = [job for job, state in self.jobs().items() if state in states]
            return bool(found)

        wait_until(seen, limit_s, f"a job that is {' or '.join(states)}\n{self.log}")
        return found[0]

    def jobs(self) -> dict[str, str]:
        """Id and state of all jobs that it submitted."""
        listing = self.cluster.run("squeue", "-h", "-t", "all", "-o", "%i %T %j")
        rows = (line.split() for line in listing.splitlines())
        return {job: state for job, state, name in rows if name.startswith(self._prefix)}

    def jobs_by_rule(self) -> dict[str, tuple[str, str]]:
        """Id and state of the last job of each rule."""
        listing = self.cluster.run("squeue", "-h", "-t", "all", "-o", "%i %T %k")
        rows = sorted(
            (int(i), state, rule) for i, state, rule in map(str.split, listing.splitlines())
        )
        return {rule.removeprefix("rule_"): (str(i), state) for i, state, rule in rows}

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    def end(self) -> None:
        """Stop it, by force if need be, and cancel what it submitted."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=15)
            self._process.kill()
            self._process.wait()
        with suppress(RuntimeError):
            open_jobs = [job for job, state in self.jobs().items() if state in _OPEN]
            if open_jobs:
                self.cluster.run("scancel", *open_jobs)


_OPEN = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED")
