"""Whether SLURM can place the run. The real scheduler is asked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from perfproof.cluster import exclude, utc
from perfproof.cluster.preflight_checks.site import (
    Answer,
    Site,
    answer,
    fail,
    not_applicable,
    ok,
    silent,
    warn,
)
from perfproof.core.resources import request
from perfproof.schema.cluster import Check

_USABLE = ("idle", "mixed", "allocated", "completing", "planned", "reserved")
# More of it may come up again; all else that sbatch refuses is in the request itself.
_PASSING = re.compile(r"DOWN, DRAINED|drained|reserved|busy|temporarily|Unable to contact", re.I)


@dataclass(frozen=True)
class Supply:
    """Nodes of the partition by name with their state: all, those that fit, those excluded."""

    all: Mapping[str, str]
    fit: Mapping[str, str]
    excluded: frozenset[str]

    @property
    def down(self) -> list[str]:
        """Nodes that fit and cannot take a job now."""
        return sorted(name for name, state in self.fit.items() if not _is_up(state))


def supply(site: Site) -> Supply | Answer:
    """What the partition has; or the answer of a SLURM that would not say."""
    chosen = ["-p", site.cluster.partition] if site.cluster.partition else []
    said = answer(["sinfo", "-h", "-N", *chosen, "-o", "%N|%T|%c|%m|%G|%f"], site.limit_s)
    if said.code != 0:
        return said
    rows = {line.split("|")[0]: line.split("|") for line in said.out.splitlines()}
    listed = exclude.active(exclude.read(site.exclude_file), utc.now())
    away = ({node.name for node in listed} | set(site.cluster.exclude)) & rows.keys()
    fit = {name: row[1] for name, row in rows.items() if name not in away and _fits(site, row)}
    return Supply({name: row[1] for name, row in rows.items()}, fit, frozenset(away))


def nodes(site: Site) -> Check:
    """Enough nodes of the partition are as large as a run needs, not excluded, and up."""
    has, wanted = supply(site), site.resolved.nodes
    if isinstance(has, Answer):
        return silent("nodes", has)
    if not has.all:
        return not_applicable("nodes", "not asked: the partition has none")
    found = f"{len(has.fit)} of {len(has.all)} fit ({_size(site)})"
    found += f", {len(has.fit) - len(has.down)} of them up, {len(has.excluded)} excluded"
    if len(has.fit) < wanted:
        todo = f"check gpus_per_node, cpus_per_node, mem_mb in {site.file} and `snakemake nodes`"
        return fail("nodes", f"{found}; the run asks for {wanted}", todo)
    if len(has.fit) - len(has.down) < wanted:
        down = ", ".join(f"{name} {has.fit[name]}" for name in has.down[:4])
        return warn("nodes", f"{found}; the run asks for {wanted}", f"it will wait for: {down}")
    return ok("nodes", found)


def _size(site: Site) -> str:
    cluster = site.cluster
    parts = [f"{cluster.gpus_per_node} GPUs"]
    parts += [f"{cluster.cpus_per_node} CPUs"] if cluster.cpus_per_node else []
    parts += [f"{cluster.mem_mb} MB"] if cluster.mem_mb else []
    return ", ".join(parts)


def _fits(site: Site, row: list[str]) -> bool:
    _, _, cpus, memory, gres, features = row
    wanted = site.cluster
    gpus = sum(int(count) for count in re.findall(r"gpu:(?:[^:,()]+:)?(\d+)", gres))
    constraint = wanted.constraint or ""
    plain = re.fullmatch(r"\w+", constraint)
    return (
        gpus >= wanted.gpus_per_node
        and _number(cpus) >= (wanted.cpus_per_node or 1)
        and _number(memory) >= (wanted.mem_mb or 0)
        and (not plain or constraint in features.split(","))
    )


def _number(text: str) -> int:
    return int(text.rstrip("+")) if text.rstrip("+").isdecimal() else 0


def _is_up(state: str) -> bool:
    # Signs behind a state tell of power saving and such; `*`, no answer, is not among them.
    return state.rstrip("$@~#%!^-+") in _USABLE


def test_request(site: Site) -> Check:
    """SLURM takes the very request that the launch would make (`sbatch --test-only`)."""
    listed = answer(["sinfo", "-h", "-N", "-a", "-o", "%N"], site.limit_s)
    flag = exclude.exclude_flag(
        site.exclude_file, site.cluster.exclude, utc.now(), known=listed.out.split()
    )
    argv = ["sbatch", "--test-only", *options(site, flag), "--wrap=true"]
    said = answer(argv, site.limit_s)
    asked = f"{site.resolved.nodes} nodes, {site.resolved.ranks} ranks"
    if said.code == 0:
        when = re.search(r"to start at (\S+) .* on nodes (\S+)", said.words)
        return ok("request", f"{asked}: {'start ' + when[1] if when else said.words}")
    has = supply(site)
    # SLURM's words are the same whether such nodes do not exist or are drained.
    waits = isinstance(has, Supply) and 0 <= len(has.fit) - site.resolved.nodes < len(has.down)
    words = said.words.replace("sbatch: error: ", "").replace("allocation failure: ", "")
    if said.code is None or waits or _PASSING.search(words):
        return warn("request", f"{asked}: {words}", "a run would wait: see `sinfo -R`")
    tried = shlex.join(argv)
    return fail("request", f"{asked}: {words}", f"correct {site.file}; SLURM refused: {tried}")


def options(site: Site, exclude_flag: str) -> list[str]:
    """The launch's request in sbatch's own words."""
    asked = request(site.cluster, site.resolved, exclude_flag)
    named = {
        "partition": asked.slurm_partition,
        "account": asked.slurm_account,
        "constraint": asked.constraint,
        "nodes": asked.nodes,
        "ntasks": asked.tasks,
        "cpus-per-task": asked.cpus_per_task,
        "mem": asked.mem_mb or None,
        "time": asked.runtime,
    }
    given = [f"--{name}={value}" for name, value in named.items() if value is not None]
    return [*given, *shlex.split(asked.slurm_extra or "")]
