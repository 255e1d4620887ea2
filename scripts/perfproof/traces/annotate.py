"""Add tracks to a trace for a viewer (Perfetto, chrome://tracing): steps, idle time, claims.

`python -m perfproof.traces.annotate TRACE --claims verified/trace.json --out annotated.json.gz`

The bytes of the trace stay as they are; the new events stand at the end of its list.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Raw

from perfproof.core import step
from perfproof.core.errors import InputError
from perfproof.core.files import read_record
from perfproof.schema.claims import VerifiedClaim, VerifiedSet
from perfproof.traces.columns import build
from perfproof.traces.context import make_context
from perfproof.traces.decode import decode_bytes, read_bytes
from perfproof.traces.identity import check_single, file_rank
from perfproof.traces.raw import read_raw, write_bytes, write_raw
from perfproof.traces.repair import Repairs
from perfproof.traces.tracks import free_pid, trace_events, tracks


class _Events(msgspec.Struct):
    traceEvents: Raw  # noqa: N815 (the key in the file)


_EVENTS = msgspec.json.Decoder(_Events)


def annotate(path: Path, claims: Sequence[VerifiedClaim], out: Path) -> step.Status:
    """Write the trace at `path` with its tracks to `out`; claims of other ranks are left out."""
    if out.resolve() == path.resolve():
        raise InputError(out, "the trace itself", "another file", "--out")
    repairs = Repairs()
    data = read_bytes(path, repairs)
    decoded = decode_bytes(data, path, repairs)
    trace = build(decoded, path.name)
    check_single(trace)
    named = file_rank(path.name) if trace.meta.rank is None else trace.meta.rank
    mine = [claim for claim in claims if named is None or not claim.ranks or named in claim.ranks]
    context = make_context(trace, named or 0)
    pid = free_pid({event.pid for event in decoded.document.traceEvents})
    found = tracks(context, mine)
    events = trace_events(found, pid)
    if repairs.count():
        raw = read_raw(path)
        write_raw(out, raw.members, [*raw.texts, *events])
    else:
        write_bytes(out, _spliced(data, events))
    done = f"{len(found)} tracks, {len(mine)} of {len(claims)} claims"
    damage = [f"{path.name}: {repairs.describe()}"] if repairs.count() else []
    return step.ok_or_partial(damage, done)


def _spliced(data: bytes, events: list[bytes]) -> tuple[bytes | memoryview, ...]:
    """The file with `events` at the end of its list, in parts that are views of the file."""
    stop = _end_of_list(data)
    view = memoryview(data)
    comma = b"" if data[:stop].rstrip()[-1:] == b"[" else b","
    return view[:stop], comma + b"\n" + b",\n".join(events) + b"\n", view[stop:]


def _end_of_list(data: bytes) -> int:
    """Where the bracket stands that ends the list of events."""
    if data.lstrip()[:1] == b"[":
        return data.rindex(b"]")
    events = _EVENTS.decode(data).traceEvents
    return data.index(events) + len(events) - 1


def run_step(arguments: argparse.Namespace) -> step.Status:
    """Annotate one trace."""
    claims = [claim for path in arguments.claims for claim in read_record(path, VerifiedSet).claims]
    return annotate(arguments.trace, claims, arguments.out)


def main() -> None:
    """Command line."""
    parser = step.parser("Add tracks to a trace: steps, idle time, exposed work, claims.")
    parser.add_argument("trace", type=Path, help="a kineto trace, plain or gzip")
    parser.add_argument("--claims", type=Path, nargs="*", default=[], help="verified/trace.json, …")
    parser.add_argument("--out", type=Path, required=True, help="the new trace (….json, ….json.gz)")
    step.run(run_step, parser.parse_args())


if __name__ == "__main__":
    main()
