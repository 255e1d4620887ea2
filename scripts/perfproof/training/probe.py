"""Health of one node: can it read its home and write where the run writes? One line of output.

Standard library only, so that a node with a broken shared file system still answers.
"""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfproof.training.nodes import host_name


def node_line(host: str, home: Path, shared: Mapping[str, Path]) -> str:
    """`NODE_HEALTH <host> home=OK|FAIL shared=OK|FAIL [failed=<name>:<error>,…]`.

    `shared` maps a name for the message to a directory that must take and give up a file.
    """
    faults = {"home": _list_fault(home)} | {n: _write_fault(p, host) for n, p in shared.items()}
    failed = {name: fault for name, fault in faults.items() if fault}
    parts = [
        f"NODE_HEALTH {host}",
        f"home={'FAIL' if 'home' in failed else 'OK'}",
        f"shared={'FAIL' if failed.keys() - {'home'} else 'OK'}",
    ]
    if failed:
        parts.append("failed=" + ",".join(f"{name}:{fault}" for name, fault in failed.items()))
    return " ".join(parts)


def _list_fault(directory: Path) -> str:
    try:
        with os.scandir(directory) as entries:
            next(entries, None)
    except OSError as fault:
        return _name(fault)
    return ""


def _write_fault(directory: Path, host: str) -> str:
    probe = directory / f".node_health.{host}.{os.getpid()}"
    try:
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as fault:
        return _name(fault)
    return ""


def _name(fault: OSError) -> str:
    return errno.errorcode.get(fault.errno or 0, type(fault).__name__)


def shared_directories(run_dir: Path, shared_paths: Sequence[str]) -> dict[str, Path]:
    """Directories that every node must be able to write, under short names for messages."""
    named = {f"shared_paths[{i}]": Path(path) for i, path in enumerate(shared_paths)}
    return named | {"run_dir": run_dir}


def main() -> None:
    """`python -m perfproof.training.probe`, one process a node."""
    cli = argparse.ArgumentParser(description="Print this node's health in one line.")
    cli.add_argument("--run-dir", type=Path, required=True)
    cli.add_argument("--shared-path", action="append", default=[])
    arguments = cli.parse_args()
    shared = shared_directories(arguments.run_dir, arguments.shared_path)
    print(node_line(host_name(), Path.home(), shared), flush=True)


if __name__ == "__main__":
    main()
