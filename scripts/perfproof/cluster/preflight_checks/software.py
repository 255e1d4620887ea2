"""Whether Snakemake, its executor plugins and the profile are those that were tried."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from perfproof.cluster.preflight_checks.site import Site, fail, ok, warn
from perfproof.core.errors import InputError
from perfproof.core.files import read_yaml
from perfproof.schema.cluster import Check

EXECUTORS = ("slurm", "slurm-bounded")
_PLUGINS = ("snakemake-executor-plugin-slurm", "snakemake-executor-plugin-slurm-jobstep")


def snakemake(site: Site) -> Check:
    """Snakemake's version."""
    return _versions("snakemake", site, ("snakemake",))


def plugins(site: Site) -> Check:
    """The executor plugin and the one that it runs inside jobs."""
    return _versions("plugins", site, _PLUGINS)


def _versions(name: str, site: Site, packages: tuple[str, ...]) -> Check:
    lock = site.root / "envs" / "requirements.lock"
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE))
    found = {package: _version(package) for package in packages}
    words = ", ".join(f"{package} {version or 'absent'}" for package, version in found.items())
    if not all(found.values()):
        return fail(name, words, "bin/setup, then . .venv/bin/activate")
    other = [f"{p} {pinned[p]}" for p in packages if p in pinned and found[p] != pinned[p]]
    if other:
        return warn(name, words, f"tried with {', '.join(other)}: bin/setup")
    return ok(name, words)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def profile_of(site: Site) -> tuple[Path | None, Mapping[str, Any]]:
    """The profile's file, as Snakemake finds it, and its settings."""
    user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "snakemake"
    for place in (site.directory / site.profile, user / site.profile):
        for path in (*sorted(place.glob("config.v*+.yaml"), reverse=True), place / "config.yaml"):
            if path.is_file():
                loaded = read_yaml(path)
                if not isinstance(loaded, dict):
                    raise InputError(path, "no settings", "keys and values")
                return path, loaded
    return None, {}


def profile(site: Site) -> Check:
    """The profile is readable and submits to SLURM."""
    try:
        path, settings = profile_of(site)
    except (InputError, OSError) as fault:
        return fail("profile", str(fault), "correct the file")
    if path is None:
        todo = f"run from the repository's root, or copy profiles/{site.profile} here"
        return fail("profile", f"no '{site.profile}' here or in the user's settings", todo)
    executor = settings.get("executor")
    if executor not in EXECUTORS:
        expected = f"set executor to {' or '.join(EXECUTORS)}"
        return fail("profile", f"{site.profile}: executor {executor}", expected)
    prefix = settings.get(f"{executor}-jobname-prefix", "none")
    jobs = settings.get("jobs", "unlimited")
    found = f"{site.profile}: executor {executor}, at most {jobs} jobs, job names {prefix}_…"
    if not settings.get(f"{executor}-no-requeue"):
        todo = f"set {executor}-no-requeue: true, or SLURM holds jobs after a failed prolog"
        return warn("profile", found, todo)
    return ok("profile", found)
