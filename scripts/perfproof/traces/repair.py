"""Recover whole events from a trace that is not strict JSON, and say what was repaired.

Handled: NaN and Infinity (any case), bytes that are not UTF-8, bad escapes, trailing or missing
commas, a file cut anywhere, single damaged events (dropped). Everything else of an event stays
as it stands in the file, digit for digit.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

_EVENTS_KEY = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN_EVENTS = re.compile(r"[\s,]*")
# The end of one event and the beginning of the next: `args` objects never follow a `}`.
_NEXT_EVENT = re.compile(r"\}\s*,?\s*(?=\{)")
# A string, kept as it is, or a non-finite number where a value stands, or a comma before a bracket.
_STRING = r'"(?:[^"\\]|\\.)*"'
_NON_FINITE = re.compile(
    rf"({_STRING})|(?<=[:\[,])\s*[-+]?(?:nan|inf(?:inity)?)\s*(?=[,}}\]])", re.IGNORECASE
)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,\s*(?=[}}\]])")
_BAD_ESCAPE = re.compile(r'(\\\\)|\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_NAME = re.compile(r'"name"\s*:\s*"([^"]{1,80})')
_NAMED = 5  # events that messages name
_CONTROL = re.compile(r"[\x00-\x1f]")


@dataclass
class Repairs:
    """How often each kind of repair was made."""

    truncated_gzip: bool = False
    truncated: bool = False
    dropped_events: int = 0
    bad_utf8: int = 0
    non_finite: int = 0
    syntax: int = 0
    metadata: bool = False
    dropped: list[str] = field(default_factory=list)  # names of the first dropped events
    mended: list[str] = field(default_factory=list)  # names of the first mended events

    def drop(self, text: str) -> None:
        """Count an event that is lost, and note its name."""
        self.dropped_events += 1
        _note(self.dropped, text)

    def lost(self) -> bool:
        """Whether events are missing, so that totals are too low."""
        return self.truncated or self.truncated_gzip or self.dropped_events > 0

    def describe(self) -> str:
        """The repairs in words, empty when there were none."""
        dropped, mended = _listed(self.dropped), _listed(self.mended)
        words = {
            "file cut short, whole events before the cut kept": self.truncated,
            "gzip stream cut or corrupt": self.truncated_gzip,
            f"{self.dropped_events} damaged events dropped{dropped}": self.dropped_events,
            f"{self.bad_utf8} bytes that are not UTF-8 replaced": self.bad_utf8,
            f"{self.non_finite} NaN or infinite numbers set to null": self.non_finite,
            f"{self.syntax} events with bad escapes or commas mended{mended}": self.syntax,
            "members outside traceEvents damaged": self.metadata,
        }
        return "; ".join(text for text, happened in words.items() if happened)

    def count(self) -> int:
        """Number of single repairs."""
        whole = int(self.truncated) + int(self.truncated_gzip) + int(self.metadata)
        return whole + self.dropped_events + self.bad_utf8 + self.non_finite + self.syntax


def _note(names: list[str], text: str) -> None:
    if len(names) < _NAMED:
        found = _NAME.search(text)
        names.append(_CONTROL.sub(" ", found[1]) if found else "no name")


def _listed(names: list[str]) -> str:
    return f" ({', '.join(names)}{', …' if len(names) == _NAMED else ''})" if names else ""


@dataclass
class Salvage:
    """Events as JSON texts, and the members of the file outside `traceEvents`."""

    events: list[bytes] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)


def salvage(data: bytes, repairs: Repairs) -> Salvage | None:
    """All whole events of a damaged trace; None when it has no list of events."""
    text = _text(data, repairs)
    opening = _EVENTS_KEY.search(text)
    if opening is None and not text.lstrip().startswith("["):
        return None
    begin = opening.end() if opening else text.index("[") + 1
    found = Salvage()
    end = _Scanner(text, repairs).scan(begin, found.events)
    if opening:
        found.meta = _meta(text[: opening.start()], text[end:], repairs)
    return found


def _text(data: bytes, repairs: Repairs) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", errors="replace")
        repairs.bad_utf8 += text.count("\ufffd")
        return text


class _Scanner:
    """Walks over the events of a list, mending those that are not strict JSON."""

    def __init__(self, text: str, repairs: Repairs) -> None:
        self.text, self.repairs = text, repairs
        self.constants = 0
        self.decoder = json.JSONDecoder(parse_constant=self._constant)

    def _constant(self, _name: str) -> None:
        self.constants += 1

    def scan(self, at: int, events: list[bytes]) -> int:
        """Collect events from offset `at`; returns the offset just after the list."""
        text = self.text
        while True:
            at = _BETWEEN_EVENTS.match(text, at).end()  # type: ignore[union-attr]
            if at >= len(text):
                self.repairs.truncated = True
                return at
            if text[at] == "]":
                return at + 1
            at = self._take(at, events)

    def _take(self, at: int, events: list[bytes]) -> int:
        """One event at `at`; returns the offset behind it."""
        before = self.constants
        try:
            value, end = self.decoder.raw_decode(self.text, at)
        except (ValueError, RecursionError):  # not JSON, thousands of digits, endless nesting
            return self._mend(at, events)
        if not isinstance(value, dict):
            self.repairs.drop(self.text[at:end])
        elif self.constants > before:
            self.repairs.non_finite += self.constants - before
            events.append(_null_non_finite(self.text[at:end])[0].encode())
        else:
            events.append(self.text[at:end].encode("utf-8", errors="replace"))
        return end

    def _mend(self, at: int, events: list[bytes]) -> int:
        """An event that does not parse: mend it, or drop it and go on behind it."""
        boundary = _NEXT_EVENT.search(self.text, at)
        if boundary is None:
            return self._mend_last(at, events)
        end = boundary.start() + 1
        if not self._append_mended(self.text[at:end], events):
            self.repairs.drop(self.text[at:end])
        return end

    def _mend_last(self, at: int, events: list[bytes]) -> int:
        """The last event of the file: it may be damaged, or cut."""
        close = re.compile(r"\}\s*,?\s*\]").search(self.text, at)
        if close is None:
            self.repairs.truncated = True
            return len(self.text)
        end = close.start() + 1
        if not self._append_mended(self.text[at:end], events):
            self.repairs.drop(self.text[at:end])
        return end

    def _append_mended(self, text: str, events: list[bytes]) -> bool:
        mended, non_finite = mend(text)
        try:
            msgspec.json.decode(mended.encode("utf-8", errors="replace"), type=dict)
        except (msgspec.MsgspecError, RecursionError):
            return False
        self.repairs.non_finite += non_finite
        if not non_finite:
            self.repairs.syntax += 1
            _note(self.repairs.mended, text)
        events.append(mended.encode("utf-8", errors="replace"))
        return True


def mend(text: str) -> tuple[str, int]:
    """A JSON text with the usual faults mended, and how many non-finite numbers became null."""
    text = _BAD_ESCAPE.sub(lambda match: match[1] or r"\\", _CONTROL.sub(" ", text))
    text, non_finite = _null_non_finite(text)
    return _TRAILING_COMMA.sub(lambda match: match[1] or "", text), non_finite


def _null_non_finite(text: str) -> tuple[str, int]:
    """Non-finite numbers outside strings to null, and how many there were."""
    found = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal found
        found += match[1] is None
        return " null" if match[1] is None else match[1]

    text = _NON_FINITE.sub(replace, text)
    return text, found


def _meta(head: str, tail: str, repairs: Repairs) -> dict[str, Any]:
    """The other members of the document, as far as they can be read."""
    for text in (f'{head}"traceEvents": []{tail}', f"{head.rstrip().rstrip(',')}}}"):
        try:
            value = json.loads(mend(text)[0])
        except (ValueError, RecursionError):
            repairs.metadata = True
            continue
        if isinstance(value, dict):
            return value
    return {}
