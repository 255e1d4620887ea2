"""Regular expressions of claims: anybody may have written them, so they get a time limit."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Iterable, Iterator
from types import FrameType

from perfproof.claims.verifier.scene import CannotSayError

SECONDS = 5.0


def selected(names: Iterable[str], name_regex: str, not_regex: str) -> set[str]:
    """Names that `name_regex` finds and `not_regex`, unless empty, does not; case-insensitive.

    Raises `CannotSayError` when matching takes longer than `SECONDS`.
    """
    wanted = re.compile(name_regex, re.IGNORECASE)
    unwanted = re.compile(not_regex, re.IGNORECASE) if not_regex else None
    with _time_limit():
        return {n for n in names if wanted.search(n) and not (unwanted and unwanted.search(n))}


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """An alarm that ends a match which backtracks without end (signals: main thread only)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise CannotSayError(f"the regular expressions need more than {SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
