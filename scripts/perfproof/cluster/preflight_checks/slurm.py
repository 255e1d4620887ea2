"""What SLURM allows this user and this run: partition, account; and what it tells of jobs."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping

from perfproof.cluster.preflight_checks.site import Site, answer, fail, ok, silent, warn
from perfproof.core.errors import nearest
from perfproof.schema.cluster import Check

_OLDEST_TRIED = (22, 5)
_ACCOUNTS = ("show", "associations", f"user={getpass.getuser()}", "format=Account")
_VERSION = re.compile(r"(\d+)\.(\d+)\.\d+")
_DAYS_TIME = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")


def controller(site: Site) -> Check:
    """SLURM's commands are here and its controller answers."""
    version = answer(["sinfo", "--version"], site.limit_s)
    if version.code != 0:
        todo = "load SLURM's commands (module load slurm), or work on a login node"
        return fail("slurm", version.words, todo)
    ping = answer(["scontrol", "ping"], site.limit_s)
    found = f"{version.out.strip()}; {ping.words.partition(' ***')[0]}"
    if ping.code != 0:
        return fail("slurm", found, "wait, or check SLURM_CONF: nothing can be submitted")
    number = _VERSION.search(version.out)
    if number and (int(number[1]), int(number[2])) < _OLDEST_TRIED:
        return warn("slurm", found, "older than 22.05 was never tried: run one small job first")
    return ok("slurm", found)


def partition(site: Site) -> Check:
    """The partition exists, is up, and lets a run be as long and as wide as asked."""
    said = answer(["scontrol", "--oneliner", "show", "partition"], site.limit_s)
    if said.code != 0:
        return silent("partition", said)
    listed = [_pairs(line) for line in said.out.splitlines()]
    known = {one["PartitionName"]: one for one in listed if "PartitionName" in one}
    default = next((name for name, one in known.items() if one.get("Default") == "YES"), None)
    name = site.cluster.partition or default
    if name is None:
        todo = f"set partition in {site.file} to one of: {', '.join(sorted(known))}"
        return fail("partition", "none is set and SLURM has no default", todo)
    if name not in known:
        todo = f"set partition in {site.file} to {nearest(name, known)}"
        return fail("partition", f"no partition '{name}'", todo)
    return _allows(site, name, known[name])


def _allows(site: Site, name: str, shown: Mapping[str, str]) -> Check:
    wanted_min, nodes = site.cluster.runtime_min, site.resolved.nodes
    accounts = shown.get("AllowAccounts", "ALL")
    if shown.get("State") != "UP":
        todo = f"choose another in {site.file}, or wait: jobs will not start"
        return fail("partition", f"{name} is {shown.get('State')}", todo)
    limit_min = _minutes(shown.get("MaxTime", ""))
    if limit_min is not None and wanted_min > limit_min:
        found = f"{name} allows {limit_min:g} min, a run asks for {wanted_min}"
        return fail("partition", found, f"lower runtime_min in {site.file}")
    if shown.get("MaxNodes", "").isdecimal() and nodes > int(shown["MaxNodes"]):
        found = f"{name} allows {shown['MaxNodes']} nodes a job, the run asks for {nodes}"
        return fail("partition", found, "ask for fewer: --config nodes=…")
    if site.cluster.account and site.cluster.account not in accounts.split(",") != ["ALL"]:
        found = f"{name} takes accounts {accounts}, not '{site.cluster.account}'"
        return fail("partition", found, f"change account or partition in {site.file}")
    return ok("partition", f"{name}, up, at most {shown.get('MaxTime', '?')} a job")


def account(site: Site) -> Check:
    """The account is one that SLURM lets this user charge."""
    wanted = site.cluster.account
    said = answer(["sacctmgr", "-n", "-P", *_ACCOUNTS], site.limit_s)
    listed = sorted({name for name in said.out.split() if name}) if said.code == 0 else None
    enforced = "associations" in _setting(site, "AccountingStorageEnforce")
    if listed is None:
        if wanted is None and not enforced:
            return ok("account", "none is set; SLURM keeps no accounts")
        todo = f"if submissions are refused, change account in {site.file}"
        return warn("account", f"'{wanted}' cannot be checked: {said.words}", todo)
    if wanted is None:
        if listed or not enforced:
            return ok("account", f"none is set; SLURM takes your default ({_or_none(listed)})")
        return fail("account", "you have none", "ask the site for an account")
    if wanted in listed:
        return ok("account", wanted)
    todo = f"set account in {site.file} to one of yours: {_or_none(listed)}"
    return fail("account", f"'{wanted}' is not an account of yours", todo)


def _or_none(names: list[str]) -> str:
    return ", ".join(names) or "none"


def status_source(site: Site, executor: str, status_command: str) -> Check:
    """The executor can learn how jobs ended."""
    said = answer(["sacct", "-n", "-X", "--starttime=now"], site.limit_s)
    if said.code == 0:
        return ok("status", "accounting answers (sacct)")
    age = re.match(r"\d+", _setting(site, "MinJobAge"))
    kept = f"no accounting ({said.words}); ended jobs are kept for {age[0] if age else '?'} s"
    if executor == "slurm-bounded":
        if age and int(age[0]) < 60:
            return warn("status", kept, "ends may be missed: ask the site for MinJobAge of 300 s")
        return ok("status", f"{kept} (squeue, scontrol)")
    better = "use --profile slurm-bounded"
    if status_command == "squeue":
        return warn("status", kept, f"reasons of failures are lost: {better}")
    return fail("status", kept, f"the executor asks sacct and would wait for ever: {better}")


def _setting(site: Site, name: str) -> str:
    said = answer(["scontrol", "show", "config"], site.limit_s)
    found = re.search(rf"^{name}\s*= *(.*)$", said.out, re.MULTILINE)
    return found[1].strip() if found else ""


def _pairs(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _minutes(limit: str) -> float | None:
    parts = _DAYS_TIME.fullmatch(limit)
    if not parts:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return days * 1440 + hours * 60 + minutes + seconds / 60
