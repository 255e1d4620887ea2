"""How often the optimizer loop errs, and what it spends: whole loops with known true effects.

`python -m benchmarks.decisions [--quick] [--json] [--jobs 2]` draws noise of runs
(`decisions_noise`), plays loops through `perfproof.levers.policy` and, over the same noise, by
three plainer rules (`decisions_loops`), and prints false accepts, power, runs and regret. The last
line of `--json` is one JSON object. Everything is seeded.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv
from scipy.stats import nct, t

from benchmarks.decisions_loops import (
    Loop,
    Rule,
    any_improvement,
    beyond_band,
    one_after_another,
    through_the_policy,
    welch,
)
from benchmarks.decisions_noise import SCENARIOS, Scenario
from perfproof.levers.statistics import detectable
from perfproof.schema.loop import Decision, Noise

LEVERS = 10
HARM = -0.10
# Nodes times hours of one run, where runs are told in node-hours: two nodes, a quarter of an hour.
NODE_HOURS = 0.5
OURS = "perfproof"
RULES: dict[str, Rule] = {
    OURS: through_the_policy(Decision()),
    "one_run_any_gain": one_after_another(1, any_improvement),
    "one_run_2%_band": one_after_another(1, beyond_band),
    "fixed_n3_welch": one_after_another(3, welch),
}
_QUICK = ("gaussian 1.0%", "gaussian 18.0%", "outliers 1%", "heavy tails 18%", "day jumps 1%")
_CHUNK = 25


@dataclass(frozen=True)
class Study:
    """Loops to play: one noise, one list of true effects, in a new order each time."""

    scenario: str
    winners: tuple[float, ...]
    harmful: int
    loops: int

    def effects(self, rng: np.random.Generator) -> list[float]:
        """True effects of the levers: winners, harmful ones, the rest without effect."""
        null = LEVERS - len(self.winners) - self.harmful
        effects = [*self.winners, *[HARM] * self.harmful, *[0.0] * null]
        return [effects[place] for place in rng.permutation(LEVERS)]


def null_studies(loops: int, names: Iterable[str] | None = None) -> list[Study]:
    """All ten levers without effect, at each noise."""
    known = [scenario.name for scenario in SCENARIOS]
    return [Study(name, (), 0, loops) for name in names or known]


def power_studies(loops: int, quick: bool) -> list[Study]:
    """Two winners of one size, one harmful lever, seven without effect."""
    sizes = (0.03,) if quick else (0.01, 0.02, 0.03, 0.05, 0.10)
    wide = (0.25,) if quick else (0.10, 0.25, 0.50, 1.00)
    studies = [Study("gaussian 1.0%", (size, size), 1, loops) for size in sizes]
    studies += [Study("gaussian 18.0%", (size, size), 1, loops // 2) for size in wide]
    if not quick:
        others = ("gaussian 1.5%", "outliers 1%", "heavy tails 1%", "random walk 1%")
        for name in (*others, "AR(1) 0.7 1%", "day jumps 1%"):
            studies.append(Study(name, (0.03, 0.03), 1, loops // 2))
    return studies


def played(study: Study, numbers: Sequence[int]) -> dict[str, list[Loop]]:
    """Loops of these numbers, by all rules; a loop's noise depends on nothing but its number."""
    scenario = next(s for s in SCENARIOS if s.name == study.scenario)
    place = SCENARIOS.index(scenario)
    loops: dict[str, list[Loop]] = {rule: [] for rule in RULES}
    for number in numbers:
        rng = np.random.default_rng([place, len(study.winners), number])
        effects, noise = study.effects(rng), _noise(scenario, rng)
        for name, rule in RULES.items():
            loops[name].append(rule(effects, noise))
    return loops


def _noise(scenario: Scenario, rng: np.random.Generator) -> Any:
    decision = Decision()
    return scenario.runs(rng, decision.baseline_runs + (LEVERS + 1) * decision.max_runs_per_lever)


def play(studies: Sequence[Study], jobs: int) -> list[dict[str, list[Loop]]]:
    """All loops of all studies."""
    parts = [
        (place, range(first, min(first + _CHUNK, study.loops)))
        for place, study in enumerate(studies)
        for first in range(0, study.loops, _CHUNK)
    ]
    found: list[dict[str, list[Loop]]] = [{rule: [] for rule in RULES} for _ in studies]
    with ProcessPoolExecutor(jobs) as pool:
        chosen = [studies[place] for place, _ in parts]
        for (place, _), loops in zip(
            parts, pool.map(played, chosen, [numbers for _, numbers in parts]), strict=True
        ):
            for rule, more in loops.items():
                found[place][rule] += more
            if len(found[place][OURS]) == studies[place].loops:
                print(f"{label_of(studies[place])}: done", file=sys.stderr, flush=True)
    return found


def share(hits: int, trials: int) -> dict[str, float]:
    """A share with its exact 95 % interval (Clopper & Pearson 1934)."""
    low = float(betaincinv(hits, trials - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 0.975)) if hits < trials else 1.0
    return {"value": hits / trials, "low": low, "high": high, "n": trials}


def summary(loops: Sequence[Loop]) -> dict[str, Any]:
    """False accepts, power, runs by kind of lever, regret."""
    levers = [lever for loop in loops for lever in loop.levers]
    kinds = {
        "winner": [lever for lever in levers if lever.effect > 0],
        "null": [lever for lever in levers if lever.effect == 0],
        "harmful": [lever for lever in levers if lever.effect < 0],
    }
    winners = kinds["winner"]
    runs = float(np.mean([loop.runs for loop in loops]))
    return {
        "false_accept_per_loop": share(sum(loop.false_accept() for loop in loops), len(loops)),
        "power": share(sum(w.status == "accepted" for w in winners), len(winners))
        if winners
        else None,
        "runs_per_loop": runs,
        "baseline_runs": float(np.mean([loop.baseline_runs for loop in loops])),
        "node_hours_per_loop": runs * NODE_HOURS,
        "runs_per_lever": {
            kind: float(np.mean([lever.runs for lever in some])) if some else None
            for kind, some in kinds.items()
        },
        "most_runs_per_lever": max(lever.runs for lever in levers),
        "regret": float(np.mean([loop.regret() for loop in loops])),
    }


def fixed_repetition(effect: float, sd: float, decision: Decision) -> dict[str, Any]:
    """Pairs per lever that a single t-test needs for the same two errors (noncentral t)."""
    alpha, pairs, power = decision.false_accept_per_loop / LEVERS, 1, 0.0
    while power < decision.power:
        pairs += 1
        df, shift = 2 * pairs - 2, math.log1p(effect) / sd * math.sqrt(pairs / 2)
        power = float(nct.sf(float(t.isf(alpha, df)), df, shift))
    return {"pairs": pairs, "runs_per_lever": 2 * pairs, "power": power}


def report(studies: Sequence[Study], results: Sequence[dict[str, list[Loop]]]) -> dict[str, Any]:
    """The JSON object: key, then rule, then study."""
    tables: dict[str, Any] = {}
    for study, loops in zip(studies, results, strict=True):
        label = label_of(study)
        for rule, some in loops.items():
            for key, value in summary(some).items():
                if value is not None:
                    tables.setdefault(key, {}).setdefault(rule, {})[label] = value
    decision = Decision()
    tables["fixed_repetition_3%_at_1%"] = fixed_repetition(0.03, 0.01, decision)
    tables["detectable"] = {
        f"{sd:.1%}": detectable(
            Noise(sd=sd, df=decision.baseline_runs - 1, source="A/A"), LEVERS, decision
        )
        for sd in (0.005, 0.01, 0.015, 0.05, 0.18)
    }
    return tables


def label_of(study: Study) -> str:
    """Name of a study: its noise, and the size of its winners."""
    return f"{study.scenario}, {study.winners[0]:+.0%}" if study.winners else study.scenario


def printed(tables: dict[str, Any]) -> str:
    """Markdown tables of the report."""
    nulls = [name for name in tables["runs_per_loop"][OURS] if name not in tables["power"][OURS]]
    lines = _table(tables, nulls, "false_accept_per_loop", "loops that accept a null lever")
    lines += _table(tables, list(tables["power"][OURS]), "power", "winners accepted")
    for key, title in (("runs_per_loop", "runs per loop"), ("regret", "regret, ln(figure)")):
        lines += _table(tables, list(tables["power"][OURS]), key, title)
    return "\n".join([*lines, *_costs(tables)])


def _table(tables: dict[str, Any], labels: Sequence[str], key: str, title: str) -> list[str]:
    rules = list(RULES)
    lines = ["", f"| {title} | {' | '.join(rules)} |", "| --- |" + " --- |" * len(rules)]
    for label in labels:
        cells = [_cell(key, tables[key][rule][label]) for rule in rules]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def _cell(key: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['value']:.1%} [{value['low']:.1%}, {value['high']:.1%}]"
    return f"{value:.1f}" if key == "runs_per_loop" else f"{value:.4f}"


def _costs(tables: dict[str, Any]) -> list[str]:
    lines = ["", f"| runs a lever ({OURS}) | winner | null | harmful | most |", ""]
    lines[-1] = "| --- | --- | --- | --- | --- |"
    most = tables["most_runs_per_lever"][OURS]
    for label, kinds in tables["runs_per_lever"][OURS].items():
        cells = ["" if value is None else f"{value:.2f}" for value in kinds.values()]
        lines.append(f"| {label} | {' | '.join(cells)} | {most[label]} |")
    return lines


def main() -> None:
    """`python -m benchmarks.decisions`."""
    cli = argparse.ArgumentParser(description="Errors and costs of the optimizer loop.")
    cli.add_argument("--quick", action="store_true", help="fewer noises and loops: a minute")
    cli.add_argument("--json", action="store_true", help="a JSON object as the last line")
    cli.add_argument("--jobs", type=int, default=2, help="processes")
    cli.add_argument("--loops", type=int, help="null loops a noise; half as many with winners")
    arguments = cli.parse_args()
    loops = arguments.loops or (200 if arguments.quick else 2000)
    studies = null_studies(loops, _QUICK if arguments.quick else None)
    studies += power_studies(loops // 2, arguments.quick)
    tables = report(studies, play(studies, arguments.jobs))
    print(printed(tables))
    if arguments.json:
        print(json.dumps({"loops": loops, **tables}))


if __name__ == "__main__":
    main()
