"""Cut some steps out of a trace: a small file on which every metric of these steps is the same.

`python -m perfproof.traces.cut TRACE --steps 3-4 --out small.json.gz`
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from perfproof.core import step
from perfproof.core.errors import InputError
from perfproof.traces.args import as_int
from perfproof.traces.clock import LONGEST, to_ns
from perfproof.traces.columns import build, file_places
from perfproof.traces.context import Context, make_context
from perfproof.traces.cpu_ops import autograd_names
from perfproof.traces.decode import Event
from perfproof.traces.identity import check_single
from perfproof.traces.intervals import Mask
from perfproof.traces.model import Spans
from perfproof.traces.raw import RawTrace, Text, read_raw, write_raw
from perfproof.traces.strip import Names, kept_members, strip_paths
from perfproof.traces.window import find_steps

_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_STEP = "ProfilerStep#"
_LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async_gpu", "async"})
_FLOW_ENDS = ("s", "t", "f")
_ANNOTATIONS = frozenset({"user_annotation", "gpu_user_annotation"})
# Kinds that no metric uses, and of which there are many.
_BULKY = frozenset({"python_function", "cpu_instant_event"})
_MEMORY = "[memory]"


class _FlowId(msgspec.Struct, gc=False):
    id: object = None


_FLOW = msgspec.json.Decoder(_FlowId)


@dataclass(frozen=True)
class Options:
    """What else a cut keeps, and what it strips."""

    strings: bool = False  # paths and members that name people and machines
    bulky: bool = False  # Python frames and memory events
    strip_names: bool = False  # annotations, processes and threads


def parse_steps(text: str) -> range:
    """Step numbers `N` or `N-M`, both included."""
    match = _RANGE.fullmatch(text.strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last:
        raise InputError("--steps", f"'{text}'", "a step number N, or a range N-M")
    return range(first, last + 1)


def cut(raw: RawTrace, label: str, numbers: range, options: Options) -> list[Text]:
    """The texts of the events that the metrics of these steps rest on, in file order."""
    trace = build(raw.decoded, label)
    check_single(trace)
    context = make_context(trace, 0, numbers)
    _check(context, label, numbers)
    kept = _kept(raw, context, options)
    names = Names()
    return [_text(raw, at, options, names) for at in np.flatnonzero(kept).tolist()]


def _check(context: Context, label: str, numbers: range) -> None:
    """Refuse steps that are not there, or that launched nothing: they have no window."""
    asked = f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
    if not context.steps.number:
        found = find_steps(context.trace).number
        listed = f"steps {found[0]} to {found[-1]}" if found else "no ProfilerStep annotation"
        raise InputError(label, listed, f"step {asked}", "--steps")
    if len(context.gpu) and context.window.kind != "steps":
        raise InputError(
            label, f"no GPU event launched in {asked}", "steps with GPU work", "--steps"
        )


def _kept(raw: RawTrace, context: Context, options: Options) -> Mask:
    """For each event of the file, whether it stays."""
    document = raw.decoded.document
    places = file_places(document)
    kept = np.zeros(len(raw.events), np.bool_)
    gpu = context.window.inside | _overlaps(context.trace.gpu, context)
    chosen = {
        "gpu": gpu,
        "calls": _calls(context, gpu),
        "ops": _ops(context, gpu),
        "marks": _marks(context),
    }
    known = np.zeros_like(kept)
    for kind, rows in places.items():
        kept[rows[chosen[kind]]] = True
        known[rows] = True
    others: list[int] = np.flatnonzero(~known).tolist()
    kept[others] = _others(raw, others, context, options)
    _flows(raw, kept, others, context, gpu)
    return kept


def _overlaps(spans: Spans, context: Context) -> Mask:
    window = context.window
    found: Mask = (spans.start < window.end) & (spans.end >= window.start)
    return found


def _calls(context: Context, gpu: Mask) -> Mask:
    """Calls of the window, and all that share a correlation with a kept GPU event."""
    calls, wanted = context.trace.calls, context.gpu.correlation[gpu]
    launches = np.isin(calls.correlation, wanted[wanted > 0])
    return _overlaps(calls, context) | launches


def _ops(context: Context, gpu: Mask) -> Mask:
    """Operations of the window, those that launched kept GPU events, and those around these.

    One operation of autograd stays on each thread where it tells that the thread is autograd's.
    """
    ops = context.trace.ops
    kept = _overlaps(ops, context)
    parents = context.links.tree.parents()
    around = np.unique(context.links.op[gpu])
    while (around := around[around >= 0]).size:
        kept[around] = True
        around = np.unique(parents[around])
    autograd = np.isin(ops.name, autograd_names(context))
    for thread in np.unique(ops.thread[kept]).tolist():
        telling = np.flatnonzero(autograd & (ops.thread == thread))
        if telling.size and not kept[telling].any():
            kept[telling[0]] = True
    return kept


def _marks(context: Context) -> Mask:
    """Annotations of the window; of the steps only those asked for."""
    marks, names = context.trace.marks, context.trace.names
    steps = [at for at, name in enumerate(names) if name.startswith(_STEP)]
    chosen = [f"{_STEP}{number}" for number in context.steps.number]
    mine = [at for at in steps if names[at] in chosen]
    is_step = np.isin(marks.name, steps)
    return _overlaps(marks, context) & (~is_step | np.isin(marks.name, mine))


def _others(raw: RawTrace, others: list[int], context: Context, options: Options) -> Mask:
    """Metadata, and events of other kinds that overlap the window."""
    events = [raw.events[at] for at in others]
    start, timed = to_ns([event.ts for event in events])
    duration, known = to_ns([event.dur for event in events])
    duration = np.where(known & (duration > 0) & (duration < LONGEST), duration, 0)
    window = context.window
    inside = timed & (start < window.end) & (start + duration >= window.start)
    return np.array(
        [
            event.ph == "M" or (bool(here) and _wanted(event, context, options))
            for event, here in zip(events, inside.tolist(), strict=True)
        ],
        np.bool_,
    )


def _wanted(event: Event, context: Context, options: Options) -> bool:
    if event.ph in _FLOW_ENDS:
        return False  # decided by what they join
    if (event.cat in _BULKY or event.name == _MEMORY) and not options.bulky:
        return False
    name = event.name or ""
    number = as_int(name.removeprefix(_STEP), -1) if name.startswith(_STEP) else None
    return number is None or number in context.steps.number


def _flows(raw: RawTrace, kept: Mask, others: list[int], context: Context, gpu: Mask) -> None:
    """Arrows from launches to kept GPU events, and those whose ends all lie in the window."""
    flows = [at for at in others if raw.events[at].ph in _FLOW_ENDS]
    if not flows:
        return
    launched = set(context.gpu.correlation[gpu].tolist())
    start, timed = to_ns([raw.events[at].ts for at in flows])
    inside = timed & (start >= context.window.start) & (start < context.window.end)
    ids = [(raw.events[at].cat, as_int(_FLOW.decode(raw.texts[at]).id, -1)) for at in flows]
    outside = {key for key, here in zip(ids, inside.tolist(), strict=True) if not here}
    for at, key in zip(flows, ids, strict=True):
        kept[at] = key[1] in launched if key[0] in _LAUNCH_FLOWS else key not in outside


def flow_ids(raw: RawTrace) -> dict[int, int]:
    """By place in the file, the id of each arrow between a launch and GPU work."""
    return {
        at: as_int(_FLOW.decode(raw.texts[at]).id, -1)
        for at, event in enumerate(raw.events)
        if event.ph in _FLOW_ENDS and event.cat in _LAUNCH_FLOWS
    }


def _text(raw: RawTrace, at: int, options: Options, names: Names) -> Text:
    text, event = raw.texts[at], raw.events[at]
    if not options.strings:
        text = strip_paths(text)
    if options.strip_names:
        if event.cat in _ANNOTATIONS:
            text = names.strip(bytes(text), b"annotation")
        elif event.ph == "M" and event.name in ("process_name", "thread_name"):
            text = names.strip(bytes(text), b"name")
    return text


def cut_file(path: Path, numbers: range, out: Path, options: Options) -> tuple[int, int]:
    """Cut the steps `numbers` of a trace into `out`: number of events and size in bytes."""
    raw = read_raw(path)
    texts = cut(raw, path.name, numbers, options)
    members = raw.members if options.strings else kept_members(raw.members)
    return len(texts), write_raw(out, members, texts)


def run_step(arguments: argparse.Namespace) -> step.Status:
    """Cut one trace."""
    options = Options(arguments.keep_strings, arguments.all_kinds, arguments.strip_names)
    numbers = parse_steps(arguments.steps)
    events, size = cut_file(arguments.trace, numbers, arguments.out, options)
    return step.Status("ok", f"{events} events, {size} bytes")


def main() -> None:
    """Command line."""
    parser = step.parser("Cut steps out of a trace, with all that their metrics rest on.")
    parser.add_argument("trace", type=Path, help="a kineto trace, plain or gzip")
    parser.add_argument("--steps", required=True, help="a step number N, or a range N-M")
    parser.add_argument("--out", type=Path, required=True, help="the new trace (….json, ….json.gz)")
    parser.add_argument(
        "--strip-names", action="store_true", help="number annotations, processes and threads too"
    )
    parser.add_argument(
        "--keep-strings", action="store_true", help="keep paths, host and user names"
    )
    parser.add_argument(
        "--all-kinds", action="store_true", help="keep Python frames and memory events too"
    )
    step.run(run_step, parser.parse_args())


if __name__ == "__main__":
    main()
