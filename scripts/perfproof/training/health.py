"""Ask every node for its health before training starts, and judge the answers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfproof.core.files import write_text
from perfproof.schema.config import Cluster
from perfproof.training.workload import interpreter

PROBE_FILE = "node_health_probe.txt"
_LINE = re.compile(r"^NODE_HEALTH (?P<host>\S+) (?P<tests>.*)$")


def probe_nodes(
    cluster: Cluster,
    nodes: Sequence[str],
    run_dir: Path,
    env: Mapping[str, str],
    timeout_s: float = 60.0,
) -> list[str]:
    """Probe every node into `node_health_probe.txt`; the faults found, one line each."""
    argv = probe_argv(cluster, nodes, run_dir)
    try:
        done = subprocess.run(
            argv, env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s
        )
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    text = output.decode(errors="replace")
    write_text(run_dir / PROBE_FILE, text)
    return node_faults(text, nodes)


def probe_argv(cluster: Cluster, nodes: Sequence[str], run_dir: Path) -> list[str]:
    """One probe a node: through srun where the cluster has it."""
    count = len(nodes)
    words = [interpreter(), "-m", "perfproof.training.probe", "--run-dir", str(run_dir.resolve())]
    for path in cluster.shared_paths:
        words += ["--shared-path", path]
    if cluster.launcher == "local":
        return words
    srun = ["srun", f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1"]
    return [*srun, "--no-kill", "--kill-on-bad-exit=0", *words]


def node_faults(text: str, nodes: Sequence[str]) -> list[str]:
    """What the probe's output says against the nodes. A node that is silent is at fault."""
    seen = {m["host"]: m["tests"] for line in text.splitlines() if (m := _LINE.match(line))}
    silent = [f"{host}: no answer" for host in nodes if host not in seen]
    failed = [f"{host}: {tests}" for host, tests in sorted(seen.items()) if "=FAIL" in tests]
    return silent + failed
