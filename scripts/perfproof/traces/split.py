"""Take a file with several ranks or devices apart: one trace for each device and its process.

`python -m perfproof.traces.split TRACE --out-dir DIR [--rank PID=RANK ...]`
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from perfproof.core import step
from perfproof.core.errors import InputError
from perfproof.traces.columns import build, file_places
from perfproof.traces.cut import flow_ids
from perfproof.traces.decode import Event
from perfproof.traces.identity import check_single
from perfproof.traces.intervals import Ints
from perfproof.traces.model import Trace
from perfproof.traces.raw import RawTrace, Text, read_raw, write_raw

_RANK = re.compile(r"([^=]+)=(\d{1,7})")
_ENDING = re.compile(r"\.json(?:\.gz)?$")
_DOUBT = 0.5  # share of a device's launches that a second process may seem to have made
_GPU_SIDE = frozenset({"gpu_user_annotation"})


@dataclass(frozen=True)
class Part:
    """One device, and the process that launched its work."""

    process: str
    device: int
    gpu: Ints  # rows of its GPU events


def parts(trace: Trace) -> list[Part]:
    """The parts of a trace; raises `InputError` where it cannot be told which are one rank's."""
    devices = np.unique(trace.gpu.device).tolist()
    if devices in ([], [-1]) or (len(devices) == 1 and len(trace.processes) < 2):
        found = f"devices {devices}, processes {list(trace.processes)}"
        raise InputError(trace.file, found, "several devices, named by args.device", "args.device")
    owned = [_part(trace, device) for device in devices]
    owners = [part.process for part in owned]
    if len(trace.processes) > 1 and (len(set(owners)) < len(owners)):
        found = f"devices {devices} of processes {owners}"
        raise InputError(trace.file, found, "one device for each process", "pid")
    return owned


def _part(trace: Trace, device: int) -> Part:
    rows = np.flatnonzero(trace.gpu.device == device)
    if len(trace.processes) == 1:
        return Part(trace.processes[0], device, rows)
    linked = {process: _linked(trace, rows, process) for process in trace.processes}
    # Ranks count their calls alike, so some events seem to follow a call of another process too.
    best = max(linked, key=lambda process: linked[process])
    second = max(count for process, count in linked.items() if process != best)
    if not linked[best] or second > _DOUBT * linked[best]:
        found = ", ".join(f"{count} from process {pid}" for pid, count in linked.items())
        what = f"of the {rows.size} GPU events of device {device}, launched: {found}"
        raise InputError(trace.file, what, "launches from one process", "args.correlation")
    return Part(best, device, rows)


def _linked(trace: Trace, rows: Ints, process: str) -> int:
    """GPU events that follow a call of the process with their correlation."""
    calls = trace.calls
    prefix = f"{process}/"
    threads = [at for at, name in enumerate(trace.threads) if name.startswith(prefix)]
    mine = np.flatnonzero(np.isin(calls.thread, threads) & (calls.correlation > 0))
    first = dict(
        zip(calls.correlation[mine[::-1]].tolist(), calls.start[mine[::-1]].tolist(), strict=True)
    )
    pairs = zip(trace.gpu.correlation[rows].tolist(), trace.gpu.start[rows].tolist(), strict=True)
    return sum(correlation in first and first[correlation] <= start for correlation, start in pairs)


def texts_of(raw: RawTrace, trace: Trace, part: Part) -> list[Text]:
    """The texts of the events of one part, in file order."""
    gpu = file_places(raw.decoded.document)["gpu"]
    mine = set(gpu[part.gpu].tolist())
    other = set(gpu.tolist()) - mine
    pids = {str(raw.events[at].pid) for at in mine}
    taken = set(map(str, trace.processes)) | set(trace.gpu_processes)
    away = taken - pids - {part.process}
    correlations = set(trace.gpu.correlation[part.gpu].tolist())
    foreign = set(trace.gpu.correlation.tolist()) - correlations
    ids = flow_ids(raw)
    return [
        text
        for at, (text, event) in enumerate(zip(raw.texts, raw.events, strict=True))
        if at not in other
        and ids.get(at, -1) not in foreign
        and (at in mine or _is_here(event, away, pids, part))
    ]


def _is_here(event: Event, away: set[str], pids: set[str], part: Part) -> bool:
    pid = str(event.pid)
    if event.cat in _GPU_SIDE:
        return pid in pids
    return pid == part.process or pid not in away


def split_file(path: Path, out: Path, ranks: Mapping[str, int]) -> list[Path]:
    """Write one trace for each part of the trace at `path` into the directory `out`."""
    raw = read_raw(path)
    trace = build(raw.decoded, path.name)
    found = parts(trace)
    unknown = sorted(ranks.keys() - {part.process for part in found})
    if unknown:
        known = ", ".join(part.process for part in found)
        raise InputError("--rank", f"process {unknown[0]}", f"one of {known}")
    written = []
    for part in found:
        members = dict(raw.members)
        if len(trace.processes) > 1:
            # What the file says about its rank was true of one of them.
            members.pop("distributedInfo", None)
        if part.process in ranks:
            members["distributedInfo"] = msgspec.json.encode({"rank": ranks[part.process]})
        target = out / _name(path, part, ranks)
        write_raw(target, members, texts_of(raw, trace, part))
        check_single(build(read_raw(target).decoded, target.name))
        written.append(target)
    return written


def _name(path: Path, part: Part, ranks: Mapping[str, int]) -> str:
    rank = f"rank{ranks[part.process]}." if part.process in ranks else ""
    stem = _ENDING.sub("", path.name)
    return f"{rank}{stem}.pid-{part.process}.device-{part.device}.json.gz"


def parse_ranks(texts: Sequence[str]) -> dict[str, int]:
    """`PID=RANK` pairs."""
    ranks = {}
    for text in texts:
        match = _RANK.fullmatch(text)
        if match is None:
            raise InputError("--rank", f"'{text}'", "PID=RANK")
        ranks[match[1]] = int(match[2])
    return ranks


def run_step(arguments: argparse.Namespace) -> step.Status:
    """Split one trace."""
    written = split_file(arguments.trace, arguments.out_dir, parse_ranks(arguments.rank))
    return step.Status("ok", f"{len(written)} traces: {', '.join(path.name for path in written)}")


def main() -> None:
    """Command line."""
    parser = step.parser("Split a trace of several devices or merged ranks.")
    parser.add_argument("trace", type=Path, help="a kineto trace, plain or gzip")
    parser.add_argument("--out-dir", type=Path, required=True, help="directory for the parts")
    parser.add_argument(
        "--rank", action="append", default=[], metavar="PID=RANK", help="rank of a process"
    )
    step.run(run_step, parser.parse_args())


if __name__ == "__main__":
    main()
