"""What a log format must offer, and small readers that formats share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar

from perfproof.foms.log import Log

GIB = 1 << 30
GB = 10**9

# torch prints NaN and infinity as nan, inf and -inf.
# Bounded, so that every match is a float and none takes long.
NUMBER = rb"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][-+]?[0-9]{1,4})?|nan|inf)"
# A positive decimal of a field that has no sign and no exponent.
DECIMAL = rb"[0-9]{1,9}\.?[0-9]{0,12}"
# What may not follow a number: then it was matched in part only.
END = rb"(?![\w.])"

_WHOLE = re.compile(NUMBER)

_RANK_BEFORE = re.compile(rb"(?:^|[^0-9])([0-9]{1,7}): *\Z")


class LogFormat(ABC):
    """One kind of line: fed with blocks of whole lines, then asked for what they said."""

    name: ClassVar[str]
    trainer: ClassVar[str | None]
    """Whose lines these are; None: anyone's. A log has one trainer's lines, headers first."""
    needles: ClassVar[tuple[bytes, ...]]
    """The first block with one of these, the block before it and all later ones go to `feed`."""

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """Read one block of lines."""

    @property
    @abstractmethod
    def found(self) -> bool:
        """True once a step or an epoch was read, not just a header."""

    @abstractmethod
    def finish(self, log: Log) -> None:
        """Write what was read to `log`."""


def number(raw: bytes | None) -> float | None:
    """A float, or None where `raw` is not one (`4.9.5`)."""
    return float(raw) if raw is not None and _WHOLE.fullmatch(raw.strip()) else None


def rank_before(data: bytes, position: int) -> int | None:
    """The rank of a `<rank>: ` prefix that ends at `position`."""
    found = _RANK_BEFORE.search(data, max(0, position - 12), position)
    return int(found[1]) if found else None
