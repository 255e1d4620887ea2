"""Ask every node for its health before training starts, and judge the answers."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.core.command import end
from perfproof.core.files import write_record, write_text
from perfproof.schema.base import Reason
from perfproof.schema.cluster import HealthReport, NodeHealth
from perfproof.schema.config import Cluster
from perfproof.training.container import container_words
from perfproof.training.processes import start
from perfproof.training.upstream.entry import expanded
from perfproof.training.workload import interpreter

PROBE_FILE = "node_health_probe.txt"
HEALTH_FILE = "node_health.json"
_LINE = re.compile(r"^NODE_HEALTH (?P<host>\S+) (?P<tests>.*)$")
# What the tests on a node get of the deadline; the rest is for starting and for answering.
_SHARE = 0.75
_STOP_S = 5.0


@dataclass(frozen=True)
class Answer:
    """What one node printed: test -> OK or FAIL, what failed, its clock."""

    tests: dict[str, str] = field(default_factory=dict)
    failed: str = ""
    time_s: float | None = None


@dataclass(frozen=True)
class Clock:
    """When the probe began and ended by this machine's clock, and how far a node's may be off."""

    begun_s: float
    ended_s: float
    limit_s: float

    def offset_s(self, time_s: float) -> float:
        """The least by which a clock is off that showed `time_s` during the probe."""
        late, early = time_s - self.ended_s, self.begun_s - time_s
        return round(late if late > 0 else -early if early > 0 else 0.0, 3)


def probe_nodes(
    cluster: Cluster, nodes: Sequence[str], run_dir: Path, env: Mapping[str, str]
) -> HealthReport:
    """Probe every node; leaves `node_health_probe.txt` and `node_health.json` in `run_dir`."""
    argv = probe_argv(cluster, nodes, run_dir)
    begun_s = time.time()
    exit_code = _run(argv, env, run_dir / PROBE_FILE, cluster.health.timeout_s)
    clock = Clock(begun_s, time.time(), cluster.health.clock_offset_s)
    text = (run_dir / PROBE_FILE).read_text(errors="replace")
    report = judged(text, nodes, clock, exit_code)
    silent = [f"NODE_HEALTH {n.name} NO_ANSWER\n" for n in report.nodes if not n.tests]
    write_text(run_dir / PROBE_FILE, text + "".join(silent))
    write_record(run_dir / HEALTH_FILE, report)
    return report


def _run(argv: Sequence[str], env: Mapping[str, str], output: Path, limit_s: float) -> int | None:
    """The exit code of the probe; None where the deadline ended it. Answers so far are kept."""
    process = start(argv, env, output)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        # srun ends its step on SIGTERM; killed at once it would leave the step to the nodes.
        end(process, signal.SIGTERM, _STOP_S)
    return None


def probe_argv(cluster: Cluster, nodes: Sequence[str], run_dir: Path) -> list[str]:
    """One probe a node: through srun where the ranks are."""
    where = f"cluster '{cluster.cluster}'"
    limit_s = _SHARE * cluster.health.timeout_s
    words = [interpreter(), "-m", "perfproof.training.probe", "--run-dir", str(run_dir.resolve())]
    words += ["--limit-s", f"{limit_s:g}"]
    for path in cluster.shared_paths:
        words += ["--shared-path", expanded(path, where, "shared_paths")]
    for path in cluster.data_paths:
        words += ["--data-path", expanded(path, where, "data_paths")]
    if cluster.container:
        words += ["--image", expanded(cluster.container.image, where, "container.image")]
        words += ["--container", shlex.join(container_words(cluster, run_dir))]
    if cluster.launcher == "local":
        return words
    count = len(nodes)
    srun = ["srun", f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1"]
    # Without GPUs and with one CPU: the probe must fit wherever the run does.
    srun += ["--cpus-per-task=1", "--gres=none", "--no-kill", "--kill-on-bad-exit=0"]
    return [*srun, *words]


def judged(text: str, nodes: Sequence[str], clock: Clock, exit_code: int | None) -> HealthReport:
    """The probe's output against the nodes; `exit_code` None: the deadline ended it.

    A node that is silent is at fault, unless all are and srun itself says that it failed.
    """
    lines = filter(None, map(_LINE.match, text.splitlines()))
    answers = {found["host"]: _answer(found["tests"]) for found in lines}
    if exit_code and not answers:
        words = " ".join(text.split())[:300] or "no output"
        fault = f"the probe did not start (exit code {exit_code}): {words}"
        return HealthReport(nodes=[], fault=fault)
    found = [_health(name, answers.get(name, Answer()), clock) for name in nodes]
    return HealthReport(nodes=found, fault=None, reasons={"fault": Reason.NOT_APPLICABLE})


def _answer(written: str) -> Answer:
    words = dict(word.split("=", 1) for word in written.split() if "=" in word)
    failed, clock = words.pop("failed", ""), words.pop("time", "")
    return Answer(words, failed, float(clock) if re.fullmatch(r"[\d.]+", clock) else None)


def _health(name: str, answer: Answer, clock: Clock) -> NodeHealth:
    offset_s = None if answer.time_s is None else clock.offset_s(answer.time_s)
    values = {"clock_offset_s": offset_s, "fault": _fault(answer, offset_s, clock.limit_s)}
    why = {"clock_offset_s": Reason.NOT_RECORDED, "fault": Reason.NOT_APPLICABLE}
    reasons = {key: why[key] for key, value in values.items() if value is None}
    return NodeHealth(name=name, tests=answer.tests, reasons=reasons, **values)


def _fault(answer: Answer, offset_s: float | None, limit_s: float) -> str | None:
    if not answer.tests:
        return "no answer"
    if "FAIL" in answer.tests.values():
        tests = " ".join(f"{name}={verdict}" for name, verdict in answer.tests.items())
        return f"{tests} failed={answer.failed}"
    if offset_s is not None and abs(offset_s) > limit_s:
        return f"clock off by {offset_s:g} s"
    return None


def node_faults(report: HealthReport) -> list[str]:
    """What the report says against the nodes, one line each."""
    if report.fault:
        return [report.fault]
    return [f"{node.name}: {node.fault}" for node in report.nodes if node.fault]
