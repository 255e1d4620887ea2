"""Numbers for people: significant digits, grouped thousands, prefixes. JSON keeps all digits."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from typing import Any

from perfproof.schema.base import REASON_MEANING, Reason, Reasoned

# control, format (such as a change of direction), unpaired surrogate, unassigned, line breaks
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
GROUP = "\N{NARROW NO-BREAK SPACE}"
SPACE = "\N{NO-BREAK SPACE}"
DASH = "\N{EM DASH}"
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))
_TIME = (*_SI[4:], (1e-9, "n"))
_IEC = ((2.0**40, "Ti"), (2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "Ki"), (1.0, ""))
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PREFIXED = {"W", "J", "Hz"}
_WORDS = {"C": "°C", "celsius": "°C"}


def number(value: float, digits: int = 4) -> str:
    """Integers exactly; other values with `digits` significant digits, tiny and huge as powers."""
    if isinstance(value, int) or value == 0:
        return _group(f"{int(value):,}")
    exponent = math.floor(math.log10(abs(value)))
    if not -4 <= exponent < 9:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        return f"{_minus(mantissa)}×10{_superscript(int(power))}"
    return _group(f"{value:,.{max(0, digits - 1 - exponent)}f}")


def percent(fraction: float) -> str:
    """A fraction as per cent: one decimal, and two digits at least below 1 %."""
    value = 100 * fraction
    if value == 0 or abs(value) >= 1:
        return f"{_minus(f'{value:.1f}')}{SPACE}%" if value else f"0{SPACE}%"
    return f"{number(value, 2)}{SPACE}%"


def gain(effect: float) -> str:
    """A relative gain with its sign: `+3.1 %`."""
    return f"+{percent(effect)}" if effect > 0 else percent(effect)


def quantity(value: float, unit: str) -> str:
    """`value` with its unit, in the prefix that reads best (`0.0123`, `s` is `12.30 ms`)."""
    if unit in _SECONDS:
        return _prefixed(value * _SECONDS[unit], "s", _TIME)
    if unit in {"B", "bytes"}:
        return _prefixed(value, "B", _IEC)
    if unit in {"fraction", "percent", "%"}:
        return percent(value if unit == "fraction" else value / 100)
    if unit in _PREFIXED:
        return _prefixed(value, unit, _SI)
    if unit in {"", "1", "count"}:
        return number(int(value) if value == int(value) else value)
    return f"{number(value)}{SPACE}{_WORDS.get(unit, unit)}"


def allowed(tolerance: float, unit: str) -> str:
    """A tolerance in the unit of the value it belongs to."""
    if unit in {"fraction", "percent", "%"}:
        points = 100 * tolerance if unit == "fraction" else tolerance
        return f"±{number(points, 3)} percentage points"
    return f"±{quantity(tolerance, unit)}"


class Missing(str):
    """The words in place of a number that is not there; pages may set them apart."""


def missing(reason: Reason) -> Missing:
    """What stands in place of a number: a dash and the reason in words."""
    return Missing(f"{DASH} ({REASON_MEANING[reason]})")


def shown(record: Reasoned, field: str, show: Callable[[Any], str] = str) -> str:
    """The field of `record` in words, or why it is null."""
    value = getattr(record, field)
    return missing(record.reasons[field]) if value is None else show(value)


def clip(name: str, length: int) -> str:
    """`name` on one line in at most `length` characters: the middle gives way."""
    name = "".join(" " if unicodedata.category(c) in _INVISIBLE else c for c in name)
    if len(name) <= length:
        return name
    keep = length - 1
    return name[: keep - keep // 3] + "…" + name[-(keep // 3) :]


def time_scale(seconds: float) -> tuple[float, str]:
    """The factor and the unit in which a time of this size reads best."""
    factor, prefix = _prefix(seconds, _TIME)
    return factor, f"{prefix}s"


def _prefixed(value: float, unit: str, prefixes: tuple[tuple[float, str], ...]) -> str:
    if value == 0:
        return f"0{SPACE}{unit}"
    factor, prefix = _prefix(value, prefixes)
    return f"{number(value / factor)}{SPACE}{prefix}{unit}"


def _prefix(value: float, prefixes: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """The largest prefix not above `value`; the smallest there is for tiny values."""
    return next((pair for pair in prefixes if abs(value) >= pair[0]), prefixes[-1])


def _group(text: str) -> str:
    return _minus(text.replace(",", GROUP))


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
