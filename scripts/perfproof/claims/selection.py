"""From candidates to claims: thresholds, the worst rank, the most costly first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from perfproof.claims.candidates import Candidate, Idle
from perfproof.claims.metrics import METRICS
from perfproof.claims.rules import MOST_CLAIMS, Rule
from perfproof.claims.vocabulary import ShareRule
from perfproof.schema.claims import BottleneckClass


@dataclass(frozen=True)
class Choice:
    """A candidate that passed, with its class, its share of the step and its rank's standing."""

    candidate: Candidate
    bottleneck: BottleneckClass
    share: float | None
    compared: int

    @property
    def cost(self) -> float:
        """What thresholds and ranks compare: the share, or the value where there is none."""
        return self.candidate.value if self.share is None else self.share

    @property
    def extreme(self) -> str:
        """How its value stands among the ranks or GPUs compared."""
        least = METRICS[self.candidate.metric].share is ShareRule.COMPLEMENT
        return "lowest" if least else "highest"

    @property
    def order(self) -> tuple[float, str, str]:
        """Most costly first; claims without a share last; then by name."""
        cost = -1.0 if self.share is None else self.share
        return -cost, self.candidate.metric, json.dumps(self.candidate.params, sort_keys=True)


def choose(
    candidates: Iterable[Candidate], rules: dict[str, Rule], idle: dict[int, Idle]
) -> list[Choice]:
    """At most `MOST_CLAIMS` choices. `idle`: by rank, for the rules that need it."""
    worst = _worst_ranks(candidates, idle)
    passed = [choice for choice in worst if _passes(choice, rules)]
    kept = _limited(sorted(passed, key=lambda choice: choice.order), rules)
    return _most_costly(_explained(kept, rules))


def share_of(candidate: Candidate, idle: dict[int, Idle]) -> float | None:
    """Upper bound on the share of step time, by the metric's rule, within [0, 1]."""
    match METRICS[candidate.metric].share:
        case ShareRule.VALUE:
            share = candidate.value
        case ShareRule.HOST:
            share = min(candidate.value, idle[candidate.rank].whole)
        case ShareRule.DISPATCH:
            share = candidate.value - idle[candidate.rank].loader
        case ShareRule.COMPLEMENT:
            share = 1 - candidate.value
        case ShareRule.NONE:
            return None
    return min(max(share, 0.0), 1.0)


def _worst_ranks(candidates: Iterable[Candidate], idle: dict[int, Idle]) -> list[Choice]:
    """Per metric and parameters (but for the GPU) the rank or GPU with the largest cost."""
    by_key: dict[str, list[Choice]] = {}
    for one in candidates:
        bottleneck = METRICS[one.metric].class_rule.of(one.params)
        if bottleneck is not None:
            params = {name: value for name, value in one.params.items() if name != "gpu"}
            key = json.dumps([one.metric, params], sort_keys=True)
            choice = Choice(one, bottleneck, share_of(one, idle), 1)
            by_key.setdefault(key, []).append(choice)
    return [
        replace(max(same, key=lambda c: (c.cost, -c.candidate.rank)), compared=len(same))
        for same in by_key.values()
    ]


def _passes(choice: Choice, rules: dict[str, Rule]) -> bool:
    """Thresholds apply to the share of the step; where there is none, to the value."""
    rule = rules[choice.candidate.metric]
    return rule.least <= choice.cost and choice.candidate.value <= rule.at_most


def _limited(choices: list[Choice], rules: dict[str, Rule]) -> list[Choice]:
    """The first `keep` choices of each metric."""
    seen: Counter[str] = Counter()
    kept = []
    for choice in choices:
        seen[choice.candidate.metric] += 1
        if seen[choice.candidate.metric] <= rules[choice.candidate.metric].keep:
            kept.append(choice)
    return kept


def _explained(choices: list[Choice], rules: dict[str, Rule]) -> list[Choice]:
    """Without explanations of a claim that is not made."""
    made = {choice.candidate.metric for choice in choices}
    return [c for c in choices if (rules[c.candidate.metric].needs or c.candidate.metric) in made]


def _most_costly(choices: list[Choice]) -> list[Choice]:
    """The first of each class, then by cost, up to the limit; in order of cost."""
    first: dict[BottleneckClass, Choice] = {}
    for choice in choices:
        first.setdefault(choice.bottleneck, choice)
    heads = list(first.values())
    rest = [choice for choice in choices if choice not in heads]
    return sorted([*heads, *rest][:MOST_CLAIMS], key=lambda choice: choice.order)
