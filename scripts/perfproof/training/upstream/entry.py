"""Which script of a trainer's clone to run, and which configuration it starts from."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.schema.config import Upstream
from perfproof.training.upstream.trainer import Trainer

_UNSET = re.compile(r"\$\w+|\$\{\w+\}")


@dataclass(frozen=True)
class Entry:
    """A Python script and the configuration it starts from; both exist."""

    script: Path
    template: Path


def expanded(text: str, where: str, key: str) -> str:
    """`text` with each `$VARIABLE` filled in; one that is not set is an error."""
    full = os.path.expandvars(text)
    if unset := _UNSET.search(full):
        raise InputError(where, f"{unset[0]} is not set", "a variable of the environment", key)
    return full


def find_entry(root: Path, site: Upstream, trainer: type[Trainer], where: str, key: str) -> Entry:
    """The entry that the site names, or the first known one that the clone `root` holds.

    `where` and `key` are the place of `site` in the cluster's file.
    """
    if not root.is_dir():
        raise InputError(where, f"no directory '{root}'", "the trainer's clone", f"{key}.root")
    found = root / site.entry if site.entry else _first_known(root, trainer, where, key)
    if not found.is_file():
        raise InputError(where, f"no file '{site.entry}'", f"a script in {root}", f"{key}.entry")
    known = next((t for e, t in trainer.known if root / e == found and t), None)
    template = root / known if known else None
    if found.suffix == ".sh":
        found, template = started_by(found)
    if site.config_template:
        template = root / expanded(site.config_template, where, f"{key}.config_template")
    if template is None or not template.is_file():
        seen = f"no file '{template}'" if template else "nothing"
        expected = "the trainer's configuration file"
        raise InputError(where, seen, expected, f"{key}.config_template")
    return Entry(found, template)


def _first_known(root: Path, trainer: type[Trainer], where: str, key: str) -> Path:
    for name, _ in trainer.known:
        if (root / name).is_file():
            return root / name
    names = ", ".join(name for name, _ in trainer.known)
    raise InputError(where, f"no known script in {root}", f"one of {names}", f"{key}.entry")


def started_by(launcher: Path) -> tuple[Path, Path | None]:
    """The Python script that a launcher's last active `python` command starts, and its argument.

    Paths are relative to the launcher's directory, where it is meant to be started.
    """
    text = launcher.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in reversed(lines):
        words = _words(line)
        scripts = [i for i, word in enumerate(words) if word.endswith(".py")]
        if scripts and any(Path(word).name.startswith("python") for word in words[: scripts[0]]):
            after = words[scripts[0] + 1 :]
            config = next((word for word in after if word.endswith((".yaml", ".yml"))), None)
            script = (launcher.parent / words[scripts[0]]).resolve()
            if not script.is_file():
                raise InputError(launcher, f"starts '{words[scripts[0]]}'", "a script that exists")
            return script, (launcher.parent / config).resolve() if config else None
    raise InputError(launcher, "no command that starts Python", "`python <script>.py <config>`")


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []
