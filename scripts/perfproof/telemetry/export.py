"""Read and write VictoriaMetrics' export: one JSON line a series, gzip or plain.

A line is `{"metric": {"__name__": …, labels}, "values": […], "timestamps": [ms, …]}`; a series may
go on in a later line. Bad lines are named and left out, the rest is read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from perfproof.core.errors import InputError
from perfproof.telemetry.store import Series, Store, Tidied, Times, Values, tidy

_EXPECTED = "JSON lines of VictoriaMetrics' /api/v1/export"
_NAMED_LINES = 5
_BLOCK, _MOST, _GZIP = 1 << 20, 8 << 20, 31
_ALWAYS = (-(2**62), 2**62)


class _Line(msgspec.Struct):
    """A line as it almost always is: numbers only."""

    metric: dict[str, str]
    values: list[float]
    timestamps: list[int]


class _OddLine(msgspec.Struct):
    """A line with staleness markers (null) or infinities (text) among its values."""

    metric: dict[str, str]
    values: list[float | str | None]
    timestamps: list[int]


_DECODE, _DECODE_ODD = msgspec.json.Decoder(_Line).decode, msgspec.json.Decoder(_OddLine).decode
_Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class _Reading:
    """What was read so far."""

    keep_ms: tuple[int, int]
    wanted: frozenset[str] | None
    parts: dict[_Key, list[tuple[Times, Values]]] = field(default_factory=dict)
    known_times: dict[tuple[int, int, int], Times] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    samples: int = 0
    outside: int = 0

    def take(self, text: bytes) -> None:
        """Add one line. Raises ValueError with what is wrong about it."""
        line = _decoded(text)
        name = line.metric.pop("__name__", "")
        if not name:
            raise ValueError("no metric name")
        if len(line.values) != len(line.timestamps):
            raise ValueError(f"{len(line.values)} values, {len(line.timestamps)} timestamps")
        self.samples += len(line.timestamps)
        if self.wanted is None or name in self.wanted:
            labels = {label: text for label, text in line.metric.items() if text}
            times, values = self._clipped(_times(line.timestamps), _floats(line.values))
            self.parts.setdefault((name, tuple(sorted(labels.items()))), []).append((times, values))

    def _clipped(self, times: Times, values: Values) -> tuple[Times, Values]:
        inside = (times >= self.keep_ms[0]) & (times <= self.keep_ms[1])
        if not inside.all():
            self.outside += int((~inside).sum())
            times, values = times[inside], values[inside]
        return self._shared(times), values

    def _shared(self, times: Times) -> Times:
        """The same array for series that were sampled together: half of the memory."""
        if not len(times):
            return times
        key = (len(times), int(times[0]), int(times[-1]))
        known = self.known_times.setdefault(key, times)
        return known if known is times or np.array_equal(known, times) else times


def read_export(
    path: Path, keep_ms: tuple[int, int] = _ALWAYS, wanted: frozenset[str] | None = None
) -> Store:
    """Series of the `wanted` metrics (None: all), clipped to the first and last time to keep.

    Raises InputError where the file holds no series at all.
    """
    reading = _Reading(keep_ms, wanted)
    number = 0
    try:
        for number, text in enumerate(_lines(path), 1):
            try:
                reading.take(text)
            except ValueError as fault:
                reading.faults.append(f"line {number}: {_short(fault)}, not used")
    except FileNotFoundError:
        raise InputError(path, "no such file", _EXPECTED) from None
    except (OSError, EOFError, zlib.error) as fault:
        reading.faults.append(f"ends damaged after line {number} ({_short(fault)})")
    if not reading.parts and not reading.samples:
        raise InputError(path, "; ".join(["no series", *reading.faults[:1]]), _EXPECTED)
    return _store(reading)


def _lines(path: Path) -> Iterator[bytes]:
    """Lines that are not blank. A cut file gives those before the cut, then raises EOFError."""
    begun: list[bytes] = []
    for block in _blocks(path):
        *whole, rest = block.split(b"\n")
        for text in whole:
            line = b"".join([*begun, text])
            begun.clear()
            if line.strip():
                yield line
        begun.append(rest)
    if (line := b"".join(begun)).strip():
        yield line


def _blocks(path: Path) -> Iterator[bytes]:
    """The text in pieces. `gzip` would lose what it has unpacked when the file ends early."""
    with path.open("rb") as stream:
        raw = stream.read(_BLOCK)
        packed = raw[:2] == b"\x1f\x8b"
        unpack = zlib.decompressobj(_GZIP)
        while raw:
            if not packed:
                yield raw
                raw = stream.read(_BLOCK)
                continue
            yield unpack.decompress(raw, _MOST)
            raw = unpack.unconsumed_tail or unpack.unused_data or stream.read(_BLOCK)
            if unpack.eof and raw:
                unpack = zlib.decompressobj(_GZIP)
        if packed and not unpack.eof:
            raise EOFError("the file ends early")


def _decoded(text: bytes) -> _Line | _OddLine:
    try:
        return _DECODE(text)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return _DECODE_ODD(text)


def _times(stamps: list[int]) -> Times:
    try:
        return np.array(stamps, dtype=np.int64)
    except OverflowError:
        raise ValueError("a timestamp beyond 64 bits") from None


def _floats(values: list[float] | list[float | str | None]) -> Values:
    """Null is a staleness marker; it and infinities become NaN, which `tidy` drops."""
    try:
        return np.array(values, dtype=np.float64)
    except ValueError:
        return np.array([np.nan if isinstance(v, str) else v for v in values], dtype=np.float64)


def _short(fault: BaseException) -> str:
    return (" ".join(str(fault).split()) or type(fault).__name__)[:120]


def _store(reading: _Reading) -> Store:
    store = Store(problems=_first(reading.faults), samples=reading.samples, outside=reading.outside)
    backward = 0
    for (name, labels), parts in sorted(reading.parts.items()):
        clean = tidied(parts)
        backward += clean.backward
        store.duplicates += clean.duplicates
        store.add(name, Series(dict(labels), clean.times_ms, clean.values))
    if backward:
        store.problems.append(f"time steps back {backward} times within a series; sorted")
    if store.duplicates:
        store.problems.append(f"{store.duplicates} samples of a time that was there; last kept")
    return store


def tidied(parts: list[tuple[Times, Values]]) -> Tidied:
    """The parts of one series as one, in order."""
    if len(parts) == 1:
        return tidy(*parts[0])
    times, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return tidy(times, values)


def _first(faults: list[str]) -> list[str]:
    """The first faults by line, then how many more there are."""
    more = len(faults) - _NAMED_LINES
    return faults[:_NAMED_LINES] + ([f"{more} more lines not used"] if more > 0 else [])


def write_export(store: Store) -> Iterable[bytes]:
    """The lines of a store, as VictoriaMetrics' import takes them."""
    for name, one in store.every():
        metric = {"__name__": name, **one.labels}
        line = _Line(metric, one.values.tolist(), one.times_ms.tolist())
        yield msgspec.json.encode(line) + b"\n"
