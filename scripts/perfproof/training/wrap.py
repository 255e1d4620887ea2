"""Start one rank's command with its output in `log_rank<N>.txt`, and become it (exec).

The process keeps its id, so signals for the rank reach the training itself.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from perfproof.training.identity import identity


def main() -> None:
    """`python -m perfproof.training.wrap --run-dir DIR … --exec COMMAND…`; does not return."""
    cli = argparse.ArgumentParser(description="Run a command as one rank.")
    cli.add_argument("--run-dir", type=Path, required=True)
    cli.add_argument("--rank-env", action="append", default=[], metavar="NAME=TEMPLATE")
    cli.add_argument("--cwd", type=Path)
    cli.add_argument("--exec", nargs=argparse.REMAINDER, required=True, dest="command")
    arguments = cli.parse_args()
    who = identity(os.environ)
    # Without buffering, a killed rank keeps the lines it printed.
    env = {"PYTHONUNBUFFERED": "1"} | os.environ.copy() | who.environment()
    for item in arguments.rank_env:
        name, _, template = item.partition("=")
        env[name] = who.fill(template)
    _redirect(arguments.run_dir / f"log_rank{who.rank}.txt")
    if arguments.cwd:
        os.chdir(arguments.cwd)
    os.execvpe(arguments.command[0], arguments.command, env)


def _redirect(log: Path) -> None:
    """Send standard output and error to `log`, in the order they are written."""
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


if __name__ == "__main__":
    main()
