"""Collectors started before the ranks and ended after them, whatever the ending.

Their output is a log of its own; what they say there (`collecting on NODE`, …) is all that the
launcher knows of them. Killed with the launcher, they end by themselves and keep their samples.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from perfproof.core.errors import InputError
from perfproof.core.series import EXPORT_FILE
from perfproof.schema.base import Reason
from perfproof.schema.config import Cluster, Dtype
from perfproof.schema.run import NodeCollector, Telemetry
from perfproof.training.collectors import FOLDER
from perfproof.training.collectors.choice import Choice, Where, choose, command
from perfproof.training.collectors.export import export
from perfproof.training.collectors.loading import samples_of
from perfproof.training.processes import start

LOG = "collector.txt"
_SAYS = re.compile(r"^(collecting|failed|collected) on (\S+): (.*)$", re.MULTILINE)
_POLL_S = 0.02
_START_S = {"sampler": 60.0, "omnistat": 360.0}
_STOP_S = {"sampler": 10.0, "omnistat": 50.0}


class NotStartedError(Exception):
    """A node has no collector; the message says which, and the last that was heard of it."""


@dataclass
class Collection:
    """Collects while entered; `record` says afterwards what became of it.

    Raises InputError on entering where a node's collector does not start, unless the cluster says
    that telemetry is not required. `is_over` tells that nobody waits for the start any more.
    """

    cluster: Cluster
    run_dir: Path
    nodes: Sequence[str]
    job_id: str
    dtype: Dtype
    env: Mapping[str, str]
    is_over: Callable[[], bool] = lambda: False
    record: Telemetry = field(default_factory=Telemetry.none)
    _choice: Choice = field(default_factory=lambda: Choice("off"))
    _process: subprocess.Popen[bytes] | None = None
    _problems: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        try:
            self._choice = choose(self.cluster)
            if self._choice.kind != "off":
                self._start()
        except (InputError, NotStartedError, OSError) as fault:
            self._problems.append(str(fault))
            if self.cluster.telemetry_required:
                self.__exit__(None, None, None)
                raise InputError(
                    f"telemetry of cluster '{self.cluster.cluster}'",
                    str(fault),
                    "a collector on every node, or `telemetry_required: false`",
                ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the collectors and write the file. No fault here may hide the run's own ending."""
        if self._choice.kind == "off" and not self._problems:
            return
        was_alive = self._process is not None and self._process.poll() is None
        try:
            self._stop()
            self.record = self._written(was_alive)
        except Exception as failure:
            self._problems.append(f"{type(failure).__name__}: {failure}")
            self.record = self._recorded({}, None, stored=False, was_alive=was_alive)
        self._print()

    @property
    def _folder(self) -> Path:
        return self.run_dir / FOLDER

    def _start(self) -> None:
        """Start the process and wait until it has spoken for every node."""
        self._folder.mkdir(parents=True, exist_ok=True)
        where = Where(self._folder, self.nodes, self.job_id, self.dtype)
        argv = command(self._choice, self.cluster, where)
        # The kernel tells it when this process dies, also by SIGKILL.
        process = self._process = start(argv, self.env, self._folder / LOG)
        deadline = time.monotonic() + _START_S[self._choice.kind]
        while not self.is_over():
            ended = process.poll() is not None
            said = self._said()
            silent = [node for node in self.nodes if node not in said["collecting"]]
            if not silent:
                return
            failed = [node for node in self.nodes if node in said["failed"]]
            if ended or failed or time.monotonic() > deadline:
                where_not = ", ".join(failed or silent)
                told = "; ".join(said["failed"].values()) or self._end_of_log()
                raise NotStartedError(f"{self._choice.kind} did not start on {where_not}: {told}")
            time.sleep(_POLL_S)

    def _said(self) -> dict[str, dict[str, str]]:
        """By what was said: node to words."""
        found: dict[str, dict[str, str]] = {"collecting": {}, "failed": {}, "collected": {}}
        with contextlib.suppress(OSError):
            text = (self._folder / LOG).read_text(errors="replace")
            for verb, node, words in _SAYS.findall(text):
                found[verb][node] = words
        return found

    def _end_of_log(self) -> str:
        with contextlib.suppress(OSError):
            lines = (self._folder / LOG).read_text(errors="replace").split("\n")
            if words := " | ".join(filter(None, lines[-7:])):
                return words[-500:]
        return "it said nothing"

    def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        # srun takes SIGTERM for an order to kill its tasks; this one it passes on to them.
        spread = self._choice.kind == "sampler" and self.cluster.launcher == "srun"
        process.send_signal(signal.SIGUSR1 if spread else signal.SIGTERM)
        for last_resort in (process.terminate, process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S[self._choice.kind])
                return
            self._problems.append("did not end when told to; its samples were kept")
            last_resort()
        process.wait()

    def _written(self, was_alive: bool) -> Telemetry:
        """Make the file, and the record of it."""
        if self._process is None:
            return self._recorded({}, None, stored=False, was_alive=False)
        # Omnistat's samples come out of the store already.
        store = self._choice.store if self._choice.kind == "sampler" else None
        done = export(self._folder, store)
        self._problems += done.problems
        stored = done.through_store or self._choice.kind == "omnistat"
        file = f"{FOLDER}/{EXPORT_FILE}" if done.series else None
        return self._recorded(done.ticks, file, stored=stored, was_alive=was_alive)

    def _recorded(
        self, ticks: Mapping[str, int], file: str | None, *, stored: bool, was_alive: bool
    ) -> Telemetry:
        said = self._said()
        return Telemetry(
            collector=self._choice.kind,
            job_id=self.job_id,
            interval_s=self.cluster.sample_interval_s,
            nodes=[] if self._choice.kind == "off" else self._of_nodes(ticks, said, was_alive),
            store="victoria_metrics" if stored else "none",
            file=file,
            why=self._choice.why,
            problems=self._problems,
            reasons={} if file else {"file": Reason.NO_TELEMETRY},
        )

    def _of_nodes(
        self, ticks: Mapping[str, int], said: Mapping[str, Mapping[str, str]], was_alive: bool
    ) -> list[NodeCollector]:
        found = []
        for node in self.nodes:
            state: Literal["collected", "died", "failed"] = "failed"
            if node in said["collecting"]:
                state = "collected" if was_alive and node in said["collected"] else "died"
            found.append(
                NodeCollector(
                    node=node,
                    state=state,
                    samples=samples_of(ticks, node),
                    said=said["failed"].get(node) or said["collecting"].get(node, ""),
                )
            )
        return found

    def _print(self) -> None:
        for node in self.record.nodes:
            told = f"{node.state}, {node.samples} samples"
            _say(f"telemetry: {self.record.collector} on {node.node}: {told}")
        for problem in self.record.problems:
            _say(f"telemetry: {problem}")


def _say(line: str) -> None:
    """Tell whoever listens. A cancelled job's reader is gone first: that is no fault of the run."""
    with contextlib.suppress(OSError):
        print(line, flush=True)
