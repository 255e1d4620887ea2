"""Start one rank's command with its output in `log_rank<N>.txt`, and become it (exec).

The process keeps its id, so signals for the rank reach the training itself. Before that it says on
the launcher's output who it believes it is, and refuses to train among another number of ranks:
ranks that each think they are alone would all train the whole data, and all write one log.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.parent import die_with_parent
from perfproof.training.identity import Identity, identity
from perfproof.training.nodes import host_name

# What every rank says on the launcher's output before anything else.
RANK_SAYS = re.compile(r"^rank \d+ of \d+, ", re.MULTILINE)


def main() -> None:
    """`python -m perfproof.training.wrap --run-dir DIR … --exec COMMAND…`; does not return."""
    cli = argparse.ArgumentParser(description="Run a command as one rank.")
    cli.add_argument("--run-dir", type=Path, required=True)
    cli.add_argument("--rank-env", action="append", default=[], metavar="NAME=TEMPLATE")
    cli.add_argument("--cwd", type=Path)
    cli.add_argument("--ranks", type=int, help="how many ranks there must be")
    cli.add_argument("--die-with-parent", action="store_true", help="also when it is killed")
    cli.add_argument("--exec", nargs=argparse.REMAINDER, required=True, dest="command")
    arguments = cli.parse_args()
    try:
        who = identity(os.environ)
        _report(who, arguments.ranks)
    except InputError as fault:
        sys.exit(f"{host_name()}: {fault}")
    # Without buffering, a killed rank keeps the lines it printed.
    env = {"PYTHONUNBUFFERED": "1"} | os.environ.copy() | who.environment()
    for item in arguments.rank_env:
        name, _, template = item.partition("=")
        env[name] = who.fill(template)
    if arguments.die_with_parent:
        die_with_parent()
    _redirect(arguments.run_dir / f"log_rank{who.rank}.txt")
    if arguments.cwd:
        os.chdir(arguments.cwd)
    os.execvpe(arguments.command[0], arguments.command, env)


def _report(who: Identity, ranks: int | None) -> None:
    place = f"local rank {who.local_rank} on {host_name()}"
    print(f"rank {who.rank} of {who.world_size}, {place}", file=sys.stderr, flush=True)
    if ranks is not None and who.world_size != ranks:
        found = f"rank {who.rank} believes that it is one of {who.world_size}"
        raise InputError("environment", found, f"{ranks} ranks, as the recipe says")


def _redirect(log: Path) -> None:
    """Send standard output and error to `log`, in the order they are written."""
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


if __name__ == "__main__":
    main()
