"""Whether the trainer that the run needs, its interpreter and its image are here."""

from __future__ import annotations

import shlex
import shutil
from importlib import metadata
from pathlib import Path

from perfproof.cluster.preflight_checks.site import Site, answer, expanded, fail, ok, warn
from perfproof.schema.cluster import Check
from perfproof.schema.config import Upstream, Workload

_VERSION = "import platform; print(platform.python_version())"


def trainer(site: Site) -> Check:
    """The real trainer's clone and interpreter, or PyTorch for the embedded workload."""
    model = site.resolved.recipe.model
    if site.resolved.workload is Workload.EMBEDDED:
        return _embedded(site)
    name, real = f"trainer {model}", site.cluster.upstream[model]
    root, unset = expanded(real.root)
    if unset:
        return fail(name, f"{unset} is not set", f"set it, or change upstream in {site.file}")
    if not Path(root).is_dir():
        return fail(name, f"no directory {root}", f"correct upstream.{model}.root in {site.file}")
    for key in ("entry", "config_template"):
        wanted, _ = expanded(getattr(real, key) or ".")
        if not (Path(root) / wanted).exists():
            todo = f"correct upstream.{model}.{key} in {site.file}"
            return fail(name, f"no file {wanted} in {root}", todo)
    return _interpreter(site, name, root, real)


def _interpreter(site: Site, name: str, root: str, real: Upstream) -> Check:
    text, unset = expanded(real.python)
    key = f"upstream.{site.resolved.recipe.model}.python in {site.file}"
    if unset:
        return fail(name, f"{unset} is not set", f"set it, or change {key}")
    words = shlex.split(text)
    if shutil.which(words[0]) is None:
        return fail(name, f"no command {words[0]}", f"load its module, or correct {key}")
    lost = [word for word in words if word.endswith((".sif", ".img")) and not Path(word).exists()]
    if lost:
        return fail(name, f"no image {lost[0]}", f"correct {key}")
    said = answer([*words, "-c", _VERSION], site.limit_s)
    if said.code != 0:
        return warn(name, f"{text}: {said.words}", "may be right if only nodes can start it")
    return ok(name, f"{root}, Python {said.out.strip()}")


def _embedded(site: Site) -> Check:
    if site.cluster.container:
        return ok("trainer", "embedded; PyTorch is the image's")
    try:
        return ok("trainer", f"embedded, torch {metadata.version('torch')}")
    except metadata.PackageNotFoundError:
        return fail("trainer", "embedded, no torch", "bin/setup, then . .venv/bin/activate")


def container(site: Site) -> Check:
    """The image, and the command that runs it."""
    box = site.cluster.container
    if box is None:
        return ok("container", "none is set")
    image, unset = expanded(box.image)
    if unset:
        return fail("container", f"{unset} is not set", f"set it, or change {site.file}")
    if not Path(image).exists():
        return fail("container", f"no image {image}", f"correct container.image in {site.file}")
    if shutil.which(box.command) is None:
        todo = "right if nodes have it; else load its module"
        return warn("container", f"{image}; no command {box.command} here", todo)
    return ok("container", f"{box.command}, {image}")
