"""Finding and reading many short fields in a block of text at once, with NumPy.

A loop with `re` needs about a microsecond a match, which is more than a whole line of a dense log
may cost. All functions take the text as bytes (uint8) and an array of positions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Text = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Room behind the last line, so that reading a line's fields never runs off the array.
MARGIN_BYTES = 256
_LONGEST_INTEGER = 9
_MOST_SPACES = 4


def text_of(data: bytes) -> Text:
    """`data` as an array, followed by `MARGIN_BYTES` line breaks."""
    return np.frombuffer(data + b"\n" * MARGIN_BYTES, dtype=np.uint8)


def find_all(text: Text, word: bytes, anchor: int) -> Positions:
    """Start of each `word`; `anchor` is the index of its rarest byte, which is looked for first."""
    starts = np.flatnonzero(text == word[anchor]) - anchor
    starts = starts[(starts >= 0) & (starts < len(text) - MARGIN_BYTES)]
    for offset, byte in enumerate(word):
        starts = starts[text[offset:][starts] == byte]
    return starts


def skip_spaces(text: Text, at: Positions) -> Positions:
    """The positions after at most four spaces."""
    for _ in range(_MOST_SPACES):
        space = text[at] == ord(" ")
        if not space.any():
            break
        at = at + space
    return at


def literal(text: Text, at: Positions, word: bytes) -> tuple[Flags, Positions]:
    """Where `word` stands at a position, and the positions behind it."""
    stands = np.ones(len(at), dtype=bool)
    for offset, byte in enumerate(word):
        stands &= text[offset:][at] == byte
    return stands, at + len(word)


def integer(text: Text, at: Positions) -> tuple[Positions, Flags, Positions]:
    """Decimal integers of up to nine digits: values, where there is one, positions behind."""
    value = np.zeros(len(at), dtype=np.int64)
    start, more = at, np.ones(len(at), dtype=bool)
    for _ in range(_LONGEST_INTEGER):
        digit = text[at] - np.uint8(ord("0"))  # wraps: bytes below "0" become large
        more = more & (digit <= 9)
        if not more.any():
            break
        value = np.where(more, value * 10 + digit, value)
        at = at + more
    return value, at > start, at
