"""A real SLURM cluster on this machine: several slurmd, each with a host name of its own.

Everything lives below one temporary directory and is found again by its pid files, so that a
cluster left by a test session that was killed is cleaned up by the next one. The nodes see the
cluster's configuration at /etc/slurm through a mount namespace; the machine's own is not touched.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self

from tests.cluster.processes import (
    command,
    kill,
    process_of,
    step_daemons,
    stop,
    wait_until,
    with_children,
)
from tests.cluster.slurm_conf import DBD_USER, Layout, config_files

_PREFIX = "perfproof-slurm-"
_FOLDERS = ("etc", "run", "log", "spool", "ctld", "gpu", "badprolog")
_DAEMONS = ("munged", "slurmctld", "slurmd", "unshare", "sbatch")
_ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb", "mariadb-install-db")
_MEMORY_CGROUPS = Path("/sys/fs/cgroup/memory")


def missing(layout: Layout) -> str:
    """Why this machine cannot have such a cluster, or nothing."""
    if os.geteuid() != 0:
        return "a SLURM cluster needs root"
    wanted = _DAEMONS + (_ACCOUNTING if layout.accounting else ())
    absent = [name for name in wanted if shutil.which(name, path=_path()) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (tests/cluster/packages.txt)"
    if subprocess.run(["unshare", "--uts", "--mount", "true"], capture_output=True).returncode:
        return "no permission for mount namespaces"
    if layout.memory_limits and not (_MEMORY_CGROUPS / "memory.limit_in_bytes").is_file():
        return "no memory controller of control groups, version 1"
    return ""


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


class Testbed:
    """One cluster. `start` it, `close` it; between, the methods make things happen to it."""

    __test__ = False

    def __init__(self, layout: Layout) -> None:
        """Take a directory for the cluster; nothing runs yet."""
        self.layout = layout
        self.root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._owner = _lock(self.root / "owner.lock")
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "SRUN", "SQUEUE"))
        } | {"SLURM_CONF": f"{self.root}/etc/slurm.conf", "PATH": _path()}

    def __enter__(self) -> Self:
        with _one_at_a_time():
            remove_abandoned()
            try:
                self.start()
            except BaseException as fault:
                fault.add_note(self._last_words())
                self.close()
                raise
        atexit.register(self.close)
        return self

    def __exit__(self, *_: object) -> None:
        atexit.unregister(self.close)
        self.close()

    def start(self) -> None:
        """Write the configuration and start every daemon; all nodes are idle afterwards."""
        self._write_configuration()
        self.run("munged", "--force", *_munged_options(self.root))
        if self.layout.accounting:
            self._start_accounting()
        self.start_controller()
        for name in self.layout.nodes:
            self.start_node(name)
        self.wait_idle()

    def run(self, *argv: str, limit_s: float = 30.0) -> str:
        """Standard output of a command in the cluster's environment."""
        return command(argv, self.env, limit_s)

    def _last_words(self) -> str:
        """The ends of all logs: why a daemon did not start."""
        logs = sorted((self.root / "log").glob("*.log"))
        ends = (path.read_text(errors="replace").splitlines()[-5:] for path in logs)
        return "\n".join(
            f"{path.name}: {line}" for path, end in zip(logs, ends, strict=True) for line in end
        )

    def _write_configuration(self) -> None:
        for folder in _FOLDERS:
            (self.root / folder).mkdir()
        self.root.chmod(0o755)
        key = self.root / "etc" / "munge.key"
        key.write_bytes(os.urandom(1024))
        host = socket.gethostname().split(".")[0]
        texts = config_files(self.layout, self.root, host, _free_ports(self.layout.ports))
        for name, text in texts.items():
            path = self.root / "etc" / name
            path.write_text(text)
            path.chmod(0o755 if name.endswith(".sh") else 0o600)
        key.chmod(0o600)
        for i in range(self.layout.gpus):
            # Any character device will do as a GPU that nobody opens; this one is /dev/null.
            os.mknod(self.root / "gpu" / f"g{i}", 0o20666, os.makedev(1, 3))

    def _start_accounting(self) -> None:
        data, log = self.root / "mysql", self.root / "log"
        install = ("--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db")
        quick = ("--auth-root-authentication-method=normal", "--innodb-flush-log-at-trx-commit=0")
        self.run("mariadb-install-db", *install, *quick, "--skip-name-resolve", limit_s=120)
        with (log / "mariadbd.log").open("wb") as stream:
            subprocess.Popen(
                ["mariadbd", *_mariadbd_options(self.root, self._port(2))],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        wait_until(lambda: self._answers(*self._sql("select 1")), 60, "mariadbd")
        user = f"{DBD_USER}@127.0.0.1"
        self.run(*self._sql(f"create user {user} identified by '{DBD_USER}'"))
        self.run(*self._sql(f"grant all on *.* to {user}"))
        self.run("slurmdbd")
        wait_until(lambda: self._answers("sacctmgr", "-n", "list", "cluster"), 60, "slurmdbd")
        self.run("sacctmgr", "-i", "add", "cluster", "test")

    def _sql(self, statement: str) -> tuple[str, ...]:
        place = ("--no-defaults", "-S", f"{self.root}/run/mysql.sock", "-u", "root")
        return ("mariadb", *place, "-e", statement)

    def _port(self, index: int) -> int:
        text = (self.root / "etc" / "slurm.conf").read_text()
        return int(text.split("SlurmctldPort=")[1].split()[0]) + index

    def _answers(self, *argv: str) -> bool:
        with suppress(RuntimeError, subprocess.TimeoutExpired):
            self.run(*argv, limit_s=5)
            return True
        return False

    def start_controller(self) -> None:
        """Start slurmctld; it answers afterwards."""
        self.run("slurmctld")
        wait_until(lambda: self._answers("scontrol", "ping"), 30, "slurmctld")

    def stop_controller(self) -> None:
        """Stop slurmctld: jobs go on, no command gets an answer."""
        stop(self._pid_file("slurmctld"), self.root)

    def start_node(self, name: str) -> None:
        """Start a node's slurmd, under its own host name and with /etc/slurm of this cluster."""
        etc = self.root / "etc"
        (self.root / "spool" / name).mkdir(exist_ok=True)
        Path("/etc/slurm").mkdir(exist_ok=True)
        script = (
            f"hostname {name} && mount --bind {etc}/hosts /etc/hosts && "
            f"mount --bind {etc} /etc/slurm && exec slurmd -N {name}"
        )
        space = ("unshare", "--uts", "--mount", "--propagation", "private")
        self.run(*space, "sh", "-c", script)

    def crash_node(self, name: str) -> None:
        """A power cut: slurmd, its steps and all they started are gone at once."""
        pid_file = self._pid_file(f"slurmd-{name}")
        daemon = process_of(pid_file, self.root)
        steps = with_children(step_daemons(self.root / "spool" / name))
        kill([*([daemon] if daemon else []), *steps])
        pid_file.unlink(missing_ok=True)

    def lose_node(self, name: str) -> None:
        """Crash a node and let the controller know at once, instead of after its time-out."""
        self.crash_node(name)
        self.run("scontrol", "update", f"node={name}", "state=down", "reason=crashed")

    @contextmanager
    def mounted(self, node: str, *mount: str) -> Iterator[None]:
        """`mount …` on one node only, as long as the context is entered."""
        daemon = process_of(self._pid_file(f"slurmd-{node}"), self.root)
        assert daemon
        inside = ("nsenter", f"--target={daemon.pid}", "--mount", "--")
        self.run(*inside, "mount", *mount)
        try:
            yield
        finally:
            with suppress(RuntimeError):
                self.run(*inside, "umount", "--lazy", mount[-1])

    def bad_prolog(self, name: str, bad: bool = True) -> None:
        """Make the node's prolog fail, or succeed again."""
        mark = self.root / "badprolog" / name
        mark.touch() if bad else mark.unlink(missing_ok=True)

    def submit(self, script: str, *options: str) -> str:
        """Submit a shell script; its job id. Output is in `root/log/job-<id>.log`."""
        output = f"--output={self.root}/log/job-%j.log"
        return self.run("sbatch", "--parsable", output, *options, f"--wrap={script}").strip()

    def log_of(self, job_id: str) -> str:
        """What a job submitted by `submit` printed."""
        return (self.root / "log" / f"job-{job_id}.log").read_text()

    def job(self, job_id: str) -> dict[str, str]:
        """What the controller knows of a job, key by key."""
        words = self.run("scontrol", "show", "job", "-o", job_id).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait_state(self, job_id: str, *states: str, limit_s: float = 30.0) -> dict[str, str]:
        """Wait until the job is in one of the states; what the controller knows then."""
        what = f"job {job_id} {' or '.join(states)}"
        wait_until(lambda: self.job(job_id)["JobState"] in states, limit_s, what)
        return self.job(job_id)

    def wait_idle(self, limit_s: float = 30.0) -> None:
        """Wait until every node that should be up is idle."""
        names = ",".join(self.layout.nodes)
        idle = (
            "sinfo",
            "-h",
            "-N",
            "-p",
            self.layout.partition,
            "-n",
            names,
            "-t",
            "idle",
            "-o",
            "%N",
        )
        wait_until(
            lambda: len(self.run(*idle).split()) == len(self.layout.nodes), limit_s, "idle nodes"
        )

    def reset(self) -> None:
        """Cancel all jobs and bring every node back: the state that each test starts from."""
        if process_of(self._pid_file("slurmctld"), self.root) is None:
            self.start_controller()
        self.run("scancel", "--user=root")
        for name in self.layout.nodes:
            self.bad_prolog(name, bad=False)
            if process_of(self._pid_file(f"slurmd-{name}"), self.root) is None:
                self.start_node(name)
            if "idle" not in (state := self._node_state(name)) and "mix" not in state:
                with suppress(RuntimeError):
                    self.run("scontrol", "update", f"node={name}", "state=resume")
        self.wait_idle()

    def _node_state(self, name: str) -> str:
        return self.run("sinfo", "-h", "-n", name, "-p", self.layout.partition, "-o", "%T").strip()

    def close(self) -> None:
        """End every process of the cluster and remove its directory."""
        _clear(self.root)
        self._owner.close()

    def _pid_file(self, name: str) -> Path:
        return self.root / "run" / f"{name}.pid"


def _munged_options(root: Path) -> list[str]:
    run = root / "run"
    places = {"key-file": root / "etc" / "munge.key", "socket": run / "munge.sock"}
    places |= {"pid-file": run / "munge.pid", "seed-file": run / "munge.seed"}
    places |= {"log-file": root / "log" / "munged.log"}
    return [f"--{name}={path}" for name, path in places.items()]


def _mariadbd_options(root: Path, port: int) -> list[str]:
    run = root / "run"
    return [
        "--no-defaults",
        "--user=root",
        f"--datadir={root}/mysql",
        f"--socket={run}/mysql.sock",
        f"--pid-file={run}/mariadb.pid",
        "--bind-address=127.0.0.1",
        f"--port={port}",
        "--skip-name-resolve",
        "--innodb-buffer-pool-size=32M",
        "--innodb-log-file-size=8M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-lock-wait-timeout=900",
        "--performance-schema=OFF",
    ]


def _clear(root: Path) -> None:
    """End what the pid files below `root` name and the steps that outlive it; remove files."""
    daemons = [process_of(pid_file, root) for pid_file in (root / "run").glob("*.pid")]
    kill(with_children([*filter(None, daemons), *step_daemons(root / "spool")]))
    for path in sorted(_MEMORY_CGROUPS.glob("slurm_*"), reverse=True):
        _remove_cgroup(path)
    shutil.rmtree(root, ignore_errors=True)


def _remove_cgroup(path: Path) -> None:
    for folder in sorted((p for p in path.rglob("*") if p.is_dir()), reverse=True):
        with suppress(OSError):
            folder.rmdir()
    with suppress(OSError):
        path.rmdir()


def remove_abandoned() -> None:
    """Clear clusters whose test session is gone: nobody holds their owner's lock."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = _lock(root / "owner.lock")
            _clear(root)
            lock.close()


def _lock(path: Path) -> IO[str]:
    """The open file with an exclusive lock on it; `BlockingIOError` when another has it."""
    stream = path.open("a")
    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return stream


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Sessions that start clusters at the same time would pick the same ports."""
    path = Path(tempfile.gettempdir()) / "perfproof-slurm.lock"
    locks: list[IO[str]] = []

    def locked() -> bool:
        with suppress(BlockingIOError):
            locks.append(_lock(path))
        return bool(locks)

    wait_until(locked, 120, "another session's start of a SLURM cluster")
    try:
        yield
    finally:
        locks[0].close()


def _free_ports(count: int) -> int:
    """The first of `count` TCP ports in a row that nobody uses."""
    for first in range(26800, 32000, 40):
        if all(map(_is_free, range(first, first + count))):
            return first
    raise RuntimeError(f"no {count} free TCP ports in a row above 26800")


def _is_free(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False
