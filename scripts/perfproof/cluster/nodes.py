"""Read and change the exclude list: `python -m perfproof.cluster.nodes list|add|clear|flag`."""

from __future__ import annotations

import argparse
import getpass
from datetime import datetime, timedelta
from pathlib import Path

from perfproof.cluster import exclude, utc
from perfproof.cluster.scheduler import known_nodes
from perfproof.core.errors import InputError
from perfproof.core.step import Status, parser, run
from perfproof.schema.cluster import ExcludedNode, ExcludeList


def _list(arguments: argparse.Namespace, now: datetime) -> Status:
    listed = exclude.read(arguments.file)
    live = {node.name for node in exclude.active(listed, now)}
    for node in listed.nodes:
        state = "expires" if node.name in live else "expired"
        print(f"{node.name}\t{state} {node.expires}\t{node.reason}\t{node.evidence}\t{node.by}")
    return Status("ok", f"{len(live)} excluded, {len(listed.nodes) - len(live)} expired")


def _add(arguments: argparse.Namespace, now: datetime) -> Status:
    names = [exclude.node_name(name, "command line") for name in arguments.names]
    if arguments.days <= 0:
        raise InputError("command line", f"{arguments.days:g}", "more than 0", "--days")
    later = utc.text(now + timedelta(days=arguments.days))
    expires = exclude.NEVER if arguments.until_cleared else later
    for name in names:
        found = ExcludedNode(
            name=name,
            reason=arguments.reason,
            evidence=arguments.evidence,
            first_seen=utc.text(now),
            last_seen=utc.text(now),
            expires=expires,
            by=arguments.by,
        )
        exclude.add(arguments.file, found)
    return Status("ok", f"excluded {', '.join(names)}, expires {expires}")


def _clear(arguments: argparse.Namespace, now: datetime) -> Status:
    listed = exclude.read(arguments.file)
    names = _to_clear(arguments, listed, now)
    absent = sorted(set(names) - {node.name for node in listed.nodes})
    if absent:
        raise InputError(arguments.file, f"no node {', '.join(absent)}", "nodes of the list")
    exclude.update(arguments.file, lambda current: exclude.cleared(current, names))
    return Status("ok", f"cleared {', '.join(names) or 'nothing'}")


def _to_clear(arguments: argparse.Namespace, listed: ExcludeList, now: datetime) -> list[str]:
    if arguments.all:
        return [node.name for node in listed.nodes]
    if arguments.expired:
        live = {node.name for node in exclude.active(listed, now)}
        return [node.name for node in listed.nodes if node.name not in live]
    if not arguments.names:
        raise InputError("command line", "no node", "names, --expired or --all", "clear")
    return [exclude.node_name(name, "command line") for name in arguments.names]


def _flag(arguments: argparse.Namespace, now: datetime) -> Status:
    known = known_nodes() if arguments.known else None
    flag = exclude.exclude_flag(arguments.file, arguments.names, now, known)
    print(flag)
    return Status("ok", flag or "no node is excluded")


def main() -> None:
    """Command line."""
    cli = parser("Read and change the list of nodes that jobs stay away from.")
    cli.add_argument("--file", type=Path, default=exclude.EXCLUDE_FILE, help="the list, JSON")
    verbs = cli.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="print all entries").set_defaults(do=_list)
    more = verbs.add_parser("add", help="exclude nodes")
    more.set_defaults(do=_add)
    more.add_argument("names", nargs="+", help="node names, one by one")
    more.add_argument("--reason", required=True, help="what is wrong with the node")
    more.add_argument("--evidence", required=True, help="file that shows it")
    more.add_argument("--days", type=float, default=14, help="days until it is tried again")
    more.add_argument("--until-cleared", action="store_true", help="never try it again")
    more.add_argument("--by", default=getpass.getuser(), help="who excludes it")
    less = verbs.add_parser("clear", help="take nodes off the list")
    less.set_defaults(do=_clear)
    less.add_argument("names", nargs="*", help="node names")
    less.add_argument("--expired", action="store_true", help="all expired entries")
    less.add_argument("--all", action="store_true", help="all entries")
    flag = verbs.add_parser("flag", help="print the option for sbatch, or an empty line")
    flag.set_defaults(do=_flag)
    flag.add_argument("names", nargs="*", help="nodes to exclude besides")
    flag.add_argument("--known", action="store_true", help="only nodes that SLURM knows")
    run(lambda arguments: arguments.do(arguments, utc.now()), cli.parse_args())


if __name__ == "__main__":
    main()
