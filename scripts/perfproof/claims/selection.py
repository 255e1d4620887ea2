"""From candidates to claims: thresholds, the worst rank, the most costly first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from perfproof.claims.candidates import Candidate
from perfproof.claims.metrics import METRICS
from perfproof.claims.rules import MOST_CLAIMS, Rule
from perfproof.claims.vocabulary import ShareRule
from perfproof.schema.claims import BottleneckClass

# Parameters that say where: GPUs, nodes and interfaces are compared with their like.
_PLACES = frozenset({"gpu", "instance", "interface"})


@dataclass(frozen=True)
class Choice:
    """A candidate that passed, with its class and its rank's standing."""

    candidate: Candidate
    bottleneck: BottleneckClass
    compared: int
    is_extreme: bool = True

    @property
    def share(self) -> float | None:
        """Upper bound on the share of step time."""
        return self.candidate.share

    @property
    def cost(self) -> float:
        """What thresholds and ranks compare: the share, or the value where there is none."""
        return self.candidate.value if self.share is None else self.share

    @property
    def extreme(self) -> str:
        """How it stands among the ranks or GPUs compared: by its value where that is extreme."""
        if not self.is_extreme:
            return "largest share"
        least = METRICS[self.candidate.metric].share is ShareRule.COMPLEMENT
        return "lowest" if least else "highest"

    @property
    def order(self) -> tuple[float, int, str]:
        """Most costly first; claims without a share last; then as the vocabulary and by name.

        The vocabulary names the whole before its parts.
        """
        cost = -1.0 if self.share is None else self.share
        place = list(METRICS).index(self.candidate.metric)
        return -cost, place, json.dumps(self.candidate.params, sort_keys=True)


def choose(candidates: Iterable[Candidate], rules: dict[str, Rule]) -> list[Choice]:
    """At most `MOST_CLAIMS` choices."""
    worst = _worst_ranks(candidates)
    passed = [choice for choice in worst if _passes(choice, rules)]
    kept = _limited(sorted(passed, key=lambda choice: choice.order), rules)
    return _most_costly(_explained(kept, rules))


def _worst_ranks(candidates: Iterable[Candidate]) -> list[Choice]:
    """Per metric and parameters (but for the place) the rank or place with the largest cost."""
    by_key: dict[str, list[Choice]] = {}
    for one in candidates:
        bottleneck = METRICS[one.metric].class_rule.of(one.params)
        if bottleneck is not None:
            params = {name: value for name, value in one.params.items() if name not in _PLACES}
            key = json.dumps([one.metric, params], sort_keys=True)
            by_key.setdefault(key, []).append(Choice(one, bottleneck, 1))
    return [_worst(same) for same in by_key.values()]


def _worst(same: list[Choice]) -> Choice:
    found = max(same, key=lambda choice: (choice.cost, -choice.candidate.rank))
    value, values = found.candidate.value, [choice.candidate.value for choice in same]
    extreme = value == (min(values) if found.extreme == "lowest" else max(values))
    return replace(found, compared=len(same), is_extreme=extreme)


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
