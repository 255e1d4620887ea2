"""What the rule `trace_compare` asks: where the comparison goes, and the files of both sides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from perfproof.core.errors import InputError
from perfproof.core.files import digest_bytes
from perfproof.schema.config import Settings
from perfproof.traces.inputs import trace_files

_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
_ENDING = re.compile(r"(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?$")


class Comparison:
    """The comparison that the settings `trace_a` and `trace_b` ask for."""

    def __init__(self, settings: Settings) -> None:
        """Reads nothing yet: most invocations compare no traces."""
        self.paths = {"trace_a": settings.trace_a, "trace_b": settings.trace_b}
        names = [_ODD.sub("_", _ENDING.sub("", Path(path).name)) for path in self.paths.values()]
        digest = digest_bytes("\n".join(self.paths.values()).encode("utf-8", "surrogateescape"))
        self.folder: str = f"results/trace_compare/{'-vs-'.join(names)}-{digest[:8]}"

    def files_a(self, _: Any) -> list[str]:
        """The reference's traces."""
        return self._files("trace_a")

    def files_b(self, _: Any) -> list[str]:
        """The other side's traces."""
        return self._files("trace_b")

    def _files(self, key: str) -> list[str]:
        path = self.paths[key]
        if not path:
            raise InputError("config", "nothing", "a trace, or a directory of traces", key)
        # Snakemake reads braces in file names as wildcards; doubled ones are braces.
        names = [str(file) for file, _ in trace_files(Path(path))]
        return [name.replace("{", "{{").replace("}", "}}") for name in names]
