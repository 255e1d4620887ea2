"""`story.md`: what a loop tried, what it saw, what it decided, and what that cost.

The total gain is the confirmation's, never a sum or a product of steps: each step was chosen
because it looked good.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from markupsafe import Markup

from perfproof.levers.story.banned import WORDS
from perfproof.levers.story.chapters import chapter
from perfproof.levers.story.decisions import decisions
from perfproof.levers.story.page import bullets, code, document, grid, heading, joined, strong
from perfproof.levers.story.record import Loop, rows
from perfproof.levers.story.words import count, hours, interval, shown
from perfproof.report.units import gain, percent
from perfproof.schema.decisions import Confirmation, Decisions, LeverDecision

_BOUND = {
    "latency_bound": "The precision switch says that the workload is latency-bound.",
    "not_latency_bound": "The precision switch says that the workload is not latency-bound; it "
    "cannot tell compute from bandwidth.",
    "unclear": "The precision switch leaves open whether the workload is latency-bound.",
}


def story(loop: Loop, config: str = "best.yaml") -> str:
    """The whole page; `config` is the overlay of the best recipe as a command names it."""
    found, made = decisions(loop), rows(loop)
    tried = [lever for lever in found.levers if lever.order is not None]
    blocks = [
        _title(found),
        strong(verdict(found)),
        _reading(found),
        *_noise(found),
        *_path(found),
        *_table(found, tried),
        *(block for lever in tried for block in chapter(loop, lever, made)),
        *_not_tried(found),
        *_banned(tried),
        *_ledger(found),
        *_ending(found),
        *_again(found, config),
    ]
    return document(blocks)


def _title(found: Decisions) -> str:
    spec = found.spec
    place = f"{spec.workload}, cluster {spec.cluster}, {count(spec.nodes, 'node')}"
    return heading(1, f"Optimizer loop: {spec.model}, {place}")


def verdict(found: Decisions) -> str:
    """One sentence: the confirmed total gain, or that there is none."""
    total, tried = found.confirmation, sum(lever.order is not None for lever in found.levers)
    if total.outcome == "nothing_to_confirm":
        return f"No lever was accepted ({tried} of {len(found.levers)} were tried)."
    measured = _measured(total)
    if total.outcome == "confirmed":
        return f"{found.best} gains {measured} over the baseline in {found.spec.metric}."
    if total.outcome == "not_confirmed":
        return (
            f"{found.best} was accepted, but fresh runs do not confirm a gain over the baseline: "
            f"{measured}; {total.why}."
        )
    return f"{found.best} was accepted; its total gain was not measured: {total.why}."


def _measured(total: Confirmation) -> str:
    ends, runs = total.interval, f"n = {total.best_runs} and {total.baseline_runs} fresh runs"
    effect = "nothing known" if total.effect is None else gain(total.effect)
    return f"{effect} {interval(ends)} ({runs})"


def _reading(found: Decisions) -> str:
    spec = found.spec
    lower = "the baseline's figure over the recipe's, minus one"
    higher = "the recipe's figure over the baseline's, minus one"
    return joined(
        f"The figure is {spec.metric} in {spec.unit}, {spec.direction} is better. A gain is "
        f"{higher if spec.direction == 'higher' else lower}. Intervals are 95 % intervals over "
        "runs. A ~ stands where no difference was shown: the interval includes zero, or a gain did "
        "not pass the loop's test. 'To expect' "
        "is the gain pulled toward zero, because what is chosen for looking good looks better "
        "than it is. n counts the runs behind a gain, of the recipe and of what it was held "
        "against."
    )


def _noise(found: Decisions) -> list[str]:
    rule = found.spec.decision
    if found.noise is None or found.detectable is None:
        text = "The baseline's repetitions give no noise of a run: nothing could be judged."
        return [heading(2, "What could be seen"), text]
    noise = (
        f"One run varies by {percent(found.noise.sd)} (standard deviation, "
        f"{found.noise.df:.3g} degrees of freedom; {found.noise.source}). This was known "
        "before anything was spent on levers."
    )
    limit = (
        f"With at most {rule.max_runs_per_lever} runs a lever, a gain of "
        f"{percent(found.detectable)} is found with a probability of {percent(rule.power)}; a "
        f"smaller one may be missed, and one below {percent(rule.minimum_effect)} is not worth "
        f"having. The loop accepts any lever without effect with a probability of at most "
        f"{percent(rule.false_accept_per_loop)}, shared by {count(found.shares, 'lever')}."
    )
    bound = _BOUND[found.boundness] if found.boundness else ""
    return [heading(2, "What could be seen"), joined(noise), joined(limit), bound]


def _path(found: Decisions) -> list[str]:
    """One row a step; no row states a total."""
    head = ["step", "recipe", "against", "gain", "95 % interval", "to expect", "n", "verdict"]
    first = found.costs[0]
    cells = ["0", code(found.path[0]), "", "", "", "", str(first.runs), "start"]
    table = [[*cells, hours(first.node_hours, first.without_cost)]]
    by_trial = {lever.trial: lever for lever in found.levers if lever.status == "accepted"}
    for step, trial in enumerate(found.path[1:], start=1):
        lever = by_trial[trial]
        table.append([str(step), code(trial), code(lever.against or ""), *_result(found, lever)])
    note = "Gains of steps must not be added or multiplied. The total gain: "
    return [
        heading(2, "Path of the best recipe"),
        grid([*head, "node-hours"], table),
        joined(note, verdict(found)),
    ]


def _result(found: Decisions, lever: LeverDecision) -> list[str]:
    """Gain, interval, to expect, n, verdict, cost."""
    cost = next(cost for cost in found.costs[1:] if cost.part == lever.id)
    return [
        shown(lever),
        interval(lever.interval),
        "" if lever.shrunk is None else gain(lever.shrunk),
        f"{lever.candidate_runs} and {lever.best_runs}" if lever.candidate_runs else "",
        lever.status.replace("_", " "),
        hours(cost.node_hours, cost.without_cost),
    ]


def _table(found: Decisions, tried: Sequence[LeverDecision]) -> list[str]:
    head = ["", "lever", "against", "gain", "95 % interval", "to expect", "n", "verdict"]
    if not tried:
        return [heading(2, "Levers"), "No lever was tried."]
    table = [
        [str(lever.order), code(lever.id), code(lever.against or ""), *_result(found, lever)]
        for lever in tried
    ]
    picture = "![The figure of every run, and the gain of every lever](foms.png)"
    return [heading(2, "Levers in the order tried"), grid([*head, "node-hours"], table), picture]


def _not_tried(found: Decisions) -> list[str]:
    others = [lever for lever in found.levers if lever.order is None]
    if not others:
        return [heading(2, "Not tried"), "Every lever was tried."]
    table = [[code(lever.id), lever.status.replace("_", " "), lever.why] for lever in others]
    return [heading(2, "Not tried"), grid(["lever", "status", "why"], table)]


def _banned(tried: Sequence[LeverDecision]) -> list[str]:
    names = [lever.id for lever in tried if lever.status in WORDS]
    if not names:
        return []
    text = (
        "These speak against themselves under the conditions of this loop only; "
        "do_not_retry.json has the conditions, the evidence and an entry for the catalog:"
    )
    return [heading(2, "Do not retry"), joined(text), bullets(code(name) for name in names)]


def _ledger(found: Decisions) -> list[str]:
    head = ["part", "runs", "failed", "lost to infrastructure", "node-hours"]
    table = [
        [
            code(cost.part),
            str(cost.runs),
            str(cost.failed),
            str(cost.infrastructure),
            hours(cost.node_hours, cost.without_cost),
        ]
        for cost in found.costs
    ]
    unknown = found.costs[-1].without_cost
    note = f"The cost of {count(unknown, 'run')} is not known." if unknown else ""
    return [heading(2, "Cost"), grid(head, table), note]


def _ending(found: Decisions) -> list[str]:
    text = f"After {count(found.steps, 'step')} ({found.ending}): {found.ended_because}."
    more = f"Confirmation: {found.confirmation.why}."
    return [heading(2, "How it ended"), joined(text), joined(more)]


def _again(found: Decisions, config: str) -> list[str]:
    command = Markup(f"```\nsnakemake perf_report --configfile {shlex.quote(config)}\n```")
    return [
        heading(2, "Run the best recipe"),
        joined("Recipe: ", code(found.best)),
        command,
    ]
