"""What the rules ask about other authors: files, options, and whether the settings make sense."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlsplit

from perfproof.core.errors import InputError
from perfproof.core.files import canonical_json
from perfproof.schema.claims import Source
from perfproof.schema.config import Settings

SOURCES = tuple(source.value for source in Source)


def check(settings: Settings) -> None:
    """Raise InputError for an author that cannot be asked."""
    if settings.analyst == "command" and not _words(settings.analyst_command):
        raise InputError("config", "nothing", "a command line", "analyst_command")
    if settings.analyst == "openai":
        if not settings.analyst_model:
            raise InputError("config", "nothing", "a model's name", "analyst_model")
        _check_url(settings.analyst_url)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as fault:
        raise InputError("config", str(fault), "a command line", "analyst_command") from None


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        expected = "an address such as http://localhost:8000/v1"
        raise InputError("config", repr(url), expected, "analyst_url")
    if parts.username or parts.password or parts.query or parts.fragment:
        # Not shown: what is too much in it is most likely a key.
        expected = "a plain one; the key comes from the environment"
        raise InputError("config", "an address with more than host and path", expected,
                         "analyst_url")  # fmt: skip


class Authors:
    """The author besides the rules that the settings ask for, if any."""

    def __init__(self, settings: Settings) -> None:
        """Reads nothing."""
        self._settings = settings

    @property
    def settings_json(self) -> str:
        """What the step needs to know, in one argument."""
        chosen = self._settings.model_dump(include={
            "analyst", "analyst_command", "analyst_url", "analyst_model", "analyst_timeout_s",
        })  # fmt: skip
        return " ".join(canonical_json(chosen).split())

    def verified(self, wildcards: Any) -> list[str]:
        """Verdicts on the author's claims."""
        return self._files(wildcards, "verified/{}_author.json")

    def records(self, wildcards: Any) -> list[str]:
        """What was asked, taken and rejected."""
        return self._files(wildcards, "authors/{}.json")

    def _files(self, wildcards: Any, name: str) -> list[str]:
        if self._settings.analyst == "rules":
            return []
        return [f"results/{wildcards.run}/{name.format(source)}" for source in SOURCES]
