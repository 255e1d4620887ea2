"""Health of one node: can it do what training will ask of it? One line of output.

Standard library only, and no test can hold up the answer: a node with a broken shared file system
still says which of its directories does not answer.
"""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from perfproof.training.nodes import host_name

Tests = Mapping[str, Callable[[], str]]
"""Test name (`shared`, or `shared:/path` where there are several) -> a fault, or nothing."""

NO_ANSWER = "no answer"


def node_line(host: str, tests: Tests, limit_s: float) -> str:
    """`NODE_HEALTH <host> home=OK|FAIL shared=OK|FAIL [data=…] [sif=…] [bind=…] [failed=…]`."""
    faults = _run(tests, limit_s)
    kinds = list(dict.fromkeys(name.partition(":")[0] for name in tests))
    bad = {name.partition(":")[0] for name, fault in faults.items() if fault}
    parts = [f"NODE_HEALTH {host}"]
    parts += [f"{kind}={'FAIL' if kind in bad else 'OK'}" for kind in kinds]
    parts.append(f"time={time.time():.3f}")
    failed = [f"{name}:{fault}" for name, fault in faults.items() if fault]
    return " ".join([*parts, *(["failed=" + ",".join(failed)] if failed else [])])


def _run(tests: Tests, limit_s: float) -> dict[str, str]:
    """All tests at once, each for `limit_s` at most: a dead mount blocks for ever."""
    faults = dict.fromkeys(tests, NO_ANSWER.replace(" ", "_"))

    def one(name: str) -> None:
        faults[name] = tests[name]().replace(" ", "_")

    threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in tests]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + limit_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(faults)


def readable(path: Path) -> str:
    """The fault of reading a file or listing a directory, or nothing."""
    try:
        if path.is_dir():
            with os.scandir(path) as entries:
                next(entries, None)
        else:
            with path.open("rb") as stream:
                stream.read(1)
    except OSError as fault:
        return _name(fault)
    return ""


def writable(directory: Path, host: str) -> str:
    """The fault of writing, reading back and removing a file, or nothing."""
    probe = directory / f".node_health.{host}.{os.getpid()}"
    try:
        probe.write_bytes(b"x")
        read = probe.read_bytes()
        probe.unlink()
    except OSError as fault:
        return _name(fault)
    return "" if read == b"x" else "other content"


def writable_inside(container: str, directory: Path, host: str, limit_s: float) -> str:
    """The fault of the same through a container's bind of `directory`, or nothing."""
    probe = shlex.quote(str(directory / f".node_health.{host}.{os.getpid()}.bind"))
    script = f"echo x > {probe} && read -r back < {probe} && rm {probe} && [ x = $back ]"
    try:
        done = subprocess.run(
            [*shlex.split(container), "sh", "-c", script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return _name(fault) if isinstance(fault, OSError) else NO_ANSWER
    return f"exit code {done.returncode}" if done.returncode else ""


def _name(fault: OSError) -> str:
    return errno.errorcode.get(fault.errno or 0, type(fault).__name__)


def tests_of(arguments: argparse.Namespace, host: str) -> dict[str, Callable[[], str]]:
    """The tests that the command line asks for, `home` and `shared` always."""
    run_dir: Path = arguments.run_dir
    found: dict[str, Callable[[], str]] = {"home": lambda: readable(Path.home())}
    for path in (run_dir, *arguments.shared_path):
        found[f"shared:{path}"] = partial(writable, path, host)
    for path in arguments.data_path:
        found[f"data:{path}"] = partial(readable, path)
    if arguments.image:
        found["sif"] = partial(readable, arguments.image)
    if arguments.container:
        found["bind"] = partial(
            writable_inside, arguments.container, run_dir, host, arguments.limit_s
        )
    return found


def main() -> None:
    """`python -m perfproof.training.probe`, one process a node."""
    cli = argparse.ArgumentParser(description="Print this node's health in one line.")
    cli.add_argument("--run-dir", type=Path, required=True)
    cli.add_argument("--shared-path", type=Path, action="append", default=[])
    cli.add_argument("--data-path", type=Path, action="append", default=[])
    cli.add_argument("--image", type=Path)
    cli.add_argument("--container", default="", help="words that run a command in the container")
    cli.add_argument("--limit-s", type=float, default=45.0, help="for all tests together")
    arguments = cli.parse_args()
    host = host_name()
    print(node_line(host, tests_of(arguments, host), arguments.limit_s), flush=True)
    # A test that hangs in the kernel must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
