"""Strip from the text of trace events what names people, machines and places."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Raw

# Directories of an absolute path, up to the file's own name; the second with JSON's backslashes.
_UNIX = re.compile(rb'(?<![\w.:/~])(?:~[\w.-]*)?/(?:[^/"\\,;:()<>\[\]{}]+/)+')
_WINDOWS = re.compile(rb'(?<!\w)[A-Za-z]:(?:(?:\\\\|/)[^\\/":,;()<>|]+)*(?:\\\\|/)')
_ESCAPED_SLASH = re.compile(rb"(?<!\\)((?:\\\\)*)\\/")  # which JSON allows for a slash
_NAME = re.compile(rb'("name"\s*:\s*)"((?:[^"\\]|\\.)*)"')
# Annotations that PyTorch itself makes and analysis knows.
_KNOWN = re.compile(
    rb"ProfilerStep#|enumerate\(DataLoader\)#|Optimizer\.|nccl:|DistributedDataParallel\.|c10d::"
)
# Members of the file that say what was recorded, on which devices; others may name anything.
_MEMBERS = re.compile(
    r"schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds|displayTimeUnit|trace_id"
    r"|record_shapes|with_stack|with_flops|with_modules|profile_memory|[a-z]+_(?:\w+_)?version"
)

Text = Raw | bytes


def strip_paths(text: Text) -> bytes:
    """The text with the directories of absolute paths left out."""
    data = bytes(text)
    if b"\\/" in data:
        data = _ESCAPED_SLASH.sub(rb"\1/", data)
    if b"/" in data:
        data = _UNIX.sub(b"", data)
    return _WINDOWS.sub(b"", data) if b"\\\\" in data or b":/" in data else data


def kept_members(members: Mapping[str, Text]) -> dict[str, Text]:
    """Members that say nothing about people or machines but their GPUs."""
    kept = {key: text for key, text in members.items() if _MEMBERS.fullmatch(key)}
    return {key: strip_paths(text) for key, text in kept.items()}


class Names:
    """Numbers in place of names that a user gave; the same name gets the same number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def strip(self, text: bytes, what: bytes) -> bytes:
        """The event with every `name` that PyTorch did not give replaced by `what` and a number.

        Names of the kind of metadata itself (`process_name`, `thread_name`) stay.
        """

        def number(match: re.Match[bytes]) -> bytes:
            name = match[2]
            if _KNOWN.match(name) or name in (b"process_name", b"thread_name"):
                return match[0]
            place = self._numbers.setdefault(name, len(self._numbers) + 1)
            return b'%s"%s %d"' % (match[1], what, place)

        return _NAME.sub(number, text)
