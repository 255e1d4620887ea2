"""The contract of every step: its last line of output, its exit code, its one-line errors.

A step is a function `(arguments) -> Status`. `run` calls it and makes sure that the last line of
standard output is `STATUS=ok|partial|fail; reason=<short>` and that the exit code agrees:
0 for ok and partial (its outputs exist), 1 for fail.
"""

from __future__ import annotations

import argparse
import io
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from perfproof.core.errors import InputError


@dataclass(frozen=True)
class Status:
    """How a step ended; `reason` is a few words without a line break."""

    state: Literal["ok", "partial", "fail"]
    reason: str

    def line(self) -> str:
        """The last line a step prints."""
        return f"STATUS={self.state}; reason={' '.join(self.reason.split())}"

    @property
    def exit_code(self) -> int:
        """0 when outputs exist (ok, partial), else 1."""
        return 1 if self.state == "fail" else 0


class _Parser(argparse.ArgumentParser):
    """Bad arguments are a failed step: they too end in a STATUS line."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        _finish(Status("fail", message))


def parser(description: str) -> argparse.ArgumentParser:
    """An argument parser whose errors keep the contract."""
    return _Parser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)


def ok_or_partial(problems: Sequence[str], done: str) -> Status:
    """`ok` with what was `done`, or `partial` with the first of the `problems` and their number."""
    if not problems:
        return Status("ok", done)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return Status("partial", problems[0] + more)


def run(step: Callable[[argparse.Namespace], Status], arguments: argparse.Namespace) -> NoReturn:
    """Run `step`, print its status as the last line, exit with the code that agrees."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal without UTF-8 must not cost the status line.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = step(arguments)
    except InputError as fault:
        status = Status("fail", str(fault))
    except Exception as fault:
        traceback.print_exc()
        status = Status("fail", f"{type(fault).__name__}: {fault}")
    _finish(status)


def _finish(status: Status) -> NoReturn:
    sys.stderr.flush()
    print(status.line(), flush=True)
    sys.exit(status.exit_code)
