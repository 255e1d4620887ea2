"""The same numbers by PromQL: the raw export in a VictoriaMetrics server of the verifier's own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from perfproof.claims.verifier.scene import CannotSayError
from perfproof.claims.verifier.telemetry_stat import Key, Matchers, Stat
from perfproof.claims.verifier.telemetry_times import Steady
from perfproof.core.victoria import Victoria

_AVERAGING_MS = 1000


@dataclass
class PromqlSource:
    """Answers by instant queries, one a piece of steady time, asked at its end."""

    server: Victoria
    window: Steady
    how: str = "PromQL queries"

    def mean(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Sum over count, of all pieces."""
        sums, counts = self._sums("sum_over_time", metric, by, matchers)
        return {key: Stat(total / counts[key], counts[key]) for key, total in sums.items()}

    def largest(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Largest of all pieces."""
        found: dict[Key, float] = {}
        selector = _selector(metric, matchers)
        for low, high in self._pieces():
            text = f"max({_last('max_over_time', selector, low, high)}) by ({', '.join(by)})"
            for key, value in self._ask(text, by, high).items():
                found[key] = max(found.get(key, -math.inf), value)
        _, counts = self._sums("count_over_time", metric, by, matchers)
        return {key: Stat(value, counts[key]) for key, value in found.items() if key in counts}

    def rate(self, metric: str, by: Key, matchers: Matchers = ()) -> dict[Key, Stat]:
        """Increases over seconds, of all pieces. Raises `CannotSayError` where one went back."""
        selector = _selector(metric, matchers)
        gained: dict[Key, float] = defaultdict(float)
        seconds: dict[Key, float] = defaultdict(float)
        for low, high in self._pieces():
            change, time, back = (
                self._ask(f"{join}({text}) by ({', '.join(by)})", by, high)
                for join, text in (
                    ("sum", _difference("last_over_time", "first_over_time", selector, low, high)),
                    (
                        "max",
                        _difference("tlast_over_time", "tfirst_over_time", selector, low, high),
                    ),
                    ("max", _last("resets", selector, low, high)),
                )
            )
            if any(back.values()):
                raise CannotSayError("the counter went backwards in steady time")
            for key, value in change.items():
                gained[key] += value
                seconds[key] += time.get(key, 0.0)
        _, counts = self._sums("count_over_time", metric, by, matchers)
        return {
            key: Stat(value / seconds[key], counts[key])
            for key, value in gained.items()
            if seconds[key] and key in counts
        }

    def _sums(
        self, what: str, metric: str, by: Key, matchers: Matchers
    ) -> tuple[dict[Key, float], dict[Key, int]]:
        """`what` summed, and samples of the series that has the most, over all pieces."""
        selector = _selector(metric, matchers)
        sums: dict[Key, list[float]] = defaultdict(list)
        counts: dict[Key, int] = defaultdict(int)
        for low, high in self._pieces():
            many = f"max({_last('count_over_time', selector, low, high)}) by ({', '.join(by)})"
            for key, count in self._ask(many, by, high).items():
                counts[key] += round(count)
            text = f"sum({_last(what, selector, low, high)}) by ({', '.join(by)})"
            for key, value in self._ask(text, by, high).items():
                sums[key].append(value)
        return {key: math.fsum(values) for key, values in sums.items()}, counts

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """First and last ms of the samples that count."""
        for start, end in self.window.spans:
            low = math.ceil(round(start * 1e6) / 1e3) + _AVERAGING_MS
            high = math.floor(round(end * 1e6) / 1e3)
            if high >= low:
                yield low, high

    def _ask(self, text: str, by: Key, time_ms: int) -> dict[Key, float]:
        return {
            tuple(one.labels.get(name, "") for name in by): one.value
            for one in self.server.instant(text, time_ms)
            if not math.isnan(one.value)
        }


def _last(function: str, selector: str, low: int, high: int) -> str:
    """A lookbehind leaves its start out: 1 ms longer, it holds the first sample."""
    return f"{function}({selector}[{high - low + 1}ms])"


def _difference(late: str, early: str, selector: str, low: int, high: int) -> str:
    return f"{_last(late, selector, low, high)} - {_last(early, selector, low, high)}"


def _selector(metric: str, matchers: Matchers) -> str:
    inner = ",".join(f"{name}={_text(value)}" for name, value in matchers)
    return f"{metric}{{{inner}}}" if inner else metric


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
