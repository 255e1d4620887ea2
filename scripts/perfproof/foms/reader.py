"""One pass over a log: every format reads the blocks that hold its lines."""

from __future__ import annotations

from pathlib import Path

from perfproof.foms.blocks import LineBlocks
from perfproof.foms.formats import registry
from perfproof.foms.formats.base import LogFormat
from perfproof.foms.log import Log

# Once a trainer is known, every so many blocks (and the last) are searched for another's lines.
_BLOCKS_BETWEEN = 64


def read_log(path: Path) -> Log:
    """What the log at `path` says; OSError when it cannot be opened."""
    waiting, active = [make() for make in registry()], list[LogFormat]()
    blocks, before, others = LineBlocks(path), b"", set[str]()
    for number, data in enumerate(blocks):
        for form in active:
            form.feed(data)
        for form in [f for f in waiting if any(needle in data for needle in f.needles)]:
            form.feed(before)
            form.feed(data)
            active.append(form)
        waiting = _still_possible(waiting, active)
        before = data
        if number % _BLOCKS_BETWEEN == 0:
            others |= _trainers_in(data, active)
    others |= _trainers_in(before, active)
    log = Log()
    for form in sorted(active, key=lambda form: form.name):
        form.finish(log)
    log.formats = sorted(form.name for form in active if form.found)
    log.trainers = others | _found_trainers(active)
    log.faults = _faults(blocks, log)
    return log


def _found_trainers(forms: list[LogFormat]) -> set[str]:
    return {form.trainer for form in forms if form.trainer and form.found}


def _trainers_in(data: bytes, active: list[LogFormat]) -> set[str]:
    """Trainers of steps or epochs in a block, apart from those that are being read."""
    known = _found_trainers(active)
    if not known:
        return set()
    other = [make() for make in registry() if make.trainer and make.trainer not in known]
    for form in other:
        if any(needle in data for needle in form.needles):
            form.feed(data)
    return _found_trainers(other)


def _still_possible(waiting: list[LogFormat], active: list[LogFormat]) -> list[LogFormat]:
    """Formats to look out for: once a trainer's steps are found, only lines that anyone prints."""
    decided = any(form.trainer and form.found for form in active)
    return [form for form in waiting if form not in active and not (decided and form.trainer)]


def _faults(blocks: LineBlocks, log: Log) -> list[str]:
    """What is wrong with the file itself, one line each."""
    if blocks.size_bytes == 0:
        return ["empty file; expected the trainer's output"]
    faults = []
    if blocks.nul_bytes:
        what = "read around them" if log.has_training() else "no training line in it"
        faults.append(f"{blocks.nul_bytes} NUL bytes ({what}); expected text")
    if blocks.skipped_bytes:
        faults.append(f"{blocks.skipped_bytes} bytes without a line break, not used; expected text")
    if blocks.unfinished:
        faults.append(
            "ends in the middle of a line, which was not used; expected a line break at the end"
        )
    return faults
