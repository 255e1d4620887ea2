"""Before the first submission: can this cluster, as configured, take the run that is asked for?

One line a question, `ok|warn|fail  what: found; do this`. Every question has a deadline, and those
that do not depend on each other are asked at once.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from perfproof.cluster import exclude
from perfproof.cluster.preflight_checks import files, request, slurm, software, trainers
from perfproof.cluster.preflight_checks.site import Site, fail, not_applicable
from perfproof.core.config import load_cluster
from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, parser, run
from perfproof.schema.cluster import Check, Preflight
from perfproof.schema.config import ResolvedRecipe

Question = tuple[str, Callable[[], Check]]
_SIGNS = {"ok": "ok  ", "warn": "warn", "fail": "fail", "not_applicable": "n/a "}


def preflight(site: Site) -> Preflight:
    """All checks of a run, in a fixed order."""
    local = _answered(_local_questions(site), site.limit_s)
    checks = [*_slurm_checks(site), *local]
    return Preflight(cluster=site.cluster.cluster, nodes=site.resolved.nodes, checks=checks)


def _slurm_checks(site: Site) -> list[Check]:
    """SLURM's own answers; one line says why where there are none."""
    questions = _slurm_questions(site)
    names = ["slurm", *(name for name, _ in questions), "profile", "plugins"]
    if site.cluster.launcher == "local":
        why = "not applicable: ranks start on this machine (launcher: local)"
        return [not_applicable(name, why) for name in names]
    tools: list[Question] = [
        ("profile", partial(software.profile, site)),
        ("plugins", partial(software.plugins, site)),
    ]
    first = ("slurm", partial(slurm.controller, site))
    controller, *rest = _answered([first, *tools], 2 * site.limit_s)
    if controller.state == "fail":
        unasked = [
            not_applicable(name, "not asked: SLURM does not answer") for name, _ in questions
        ]
        return [controller, *unasked, *rest]
    return [controller, *_answered(questions, 2 * site.limit_s), *rest]


def _slurm_questions(site: Site) -> list[Question]:
    return [
        ("partition", partial(slurm.partition, site)),
        ("account", partial(slurm.account, site)),
        ("nodes", partial(request.nodes, site)),
        ("request", partial(request.test_request, site)),
        ("status", partial(_status, site)),
    ]


def _status(site: Site) -> Check:
    try:
        settings = software.profile_of(site)[1]
    except InputError:
        settings = {}
    executor = str(settings.get("executor", "slurm"))
    command = site.status_command or str(settings.get(f"{executor}-status-command", ""))
    return slurm.status_source(site, executor, command)


def _local_questions(site: Site) -> list[Question]:
    results = str(site.directory / "results")
    shared = [("shared " + text, text) for text in site.cluster.shared_paths]
    data = [("data " + text, text) for text in site.cluster.data_paths]
    return [
        ("snakemake", partial(software.snakemake, site)),
        *(
            (n, partial(files.writable, site, n, text))
            for n, text in [("results", results), *shared]
        ),
        *((n, partial(files.readable, site, n, text)) for n, text in data),
        ("container", partial(trainers.container, site)),
        ("trainer", partial(trainers.trainer, site)),
    ]


def _answered(questions: Sequence[Question], limit_s: float) -> list[Check]:
    """The answers, asked for at once. One that does not come in time is a failed check.

    A file system that hangs cannot be interrupted; its thread is left behind.
    """
    answers: dict[str, Check] = {}

    def put(name: str, ask: Callable[[], Check]) -> None:
        try:
            answers[name] = ask()
        except Exception as fault:
            answers[name] = fail(name, f"{type(fault).__name__}: {fault}", "see the message")

    threads = [threading.Thread(target=put, args=q, daemon=True) for q in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(limit_s)
    late = f"no answer within {limit_s:g} s"
    todo = "try again; a mount or a service may hang"
    return [answers.get(name) or fail(name, late, todo) for name, _ in questions]


def line(check: Check) -> str:
    """One check for a reader."""
    todo = f"; {check.remedy}" if check.remedy else ""
    return f"{_SIGNS[check.state]}  {check.name}: {check.found}{todo}"


def _step(arguments: argparse.Namespace) -> Status:
    resolved = read_record(arguments.recipe, ResolvedRecipe)
    site = Site(
        root=arguments.root,
        directory=Path(),
        cluster=load_cluster(arguments.root, resolved.cluster),
        resolved=resolved,
        profile=arguments.profile,
        status_command=arguments.status_command,
        exclude_file=arguments.exclude_file,
        limit_s=arguments.limit_s,
    )
    found = preflight(site)
    for check in found.checks:
        print(line(check))
    write_record(arguments.out, found)
    return _status_of(found)


def _status_of(found: Preflight) -> Status:
    wrong = {
        state: [c.name for c in found.checks if c.state == state] for state in ("fail", "warn")
    }
    if wrong["fail"]:
        return Status("fail", f"a run cannot start: {', '.join(wrong['fail'])}")
    if wrong["warn"]:
        return Status("partial", f"a run can start, but look at: {', '.join(wrong['warn'])}")
    return Status("ok", f"a run on {found.nodes} nodes of {found.cluster} can start")


def main() -> None:
    """Command line."""
    cli = parser("Ask whether this cluster, as configured, can take a run.")
    cli.add_argument("--recipe", type=Path, required=True, help="resolved recipe, JSON")
    cli.add_argument("--out", type=Path, required=True, help="what was found, JSON")
    cli.add_argument("--root", type=Path, default=Path(), help="the repository")
    cli.add_argument("--profile", default="slurm", help="Snakemake's profile for submissions")
    cli.add_argument("--status-command", default="", help="of the executor; default: the profile's")
    cli.add_argument("--exclude-file", type=Path, default=exclude.EXCLUDE_FILE, help="exclude list")
    cli.add_argument("--limit-s", type=float, default=15.0, help="deadline of each question")
    run(_step, cli.parse_args())


if __name__ == "__main__":
    main()
