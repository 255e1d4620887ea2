"""`story.md`: the verdict first, each step with its evidence, nothing summed up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.config import load_levers
from perfproof.levers.story.decisions import decisions
from perfproof.levers.story.record import Loop
from perfproof.levers.story.story import story, verdict
from perfproof.levers.story.words import interval
from perfproof.report.units import gain
from tests.levers.story.conftest import HOSTILE, RICH
from tests.levers.story.loops import Truth, loop_of, play, spec


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def test_the_verdict_is_the_confirmed_gain(rich: Loop) -> None:
    total = decisions(rich).confirmation
    assert total.effect is not None
    said = f"bf16 gains {gain(total.effect)} {interval(total.interval)} (n = 4 and 4 fresh runs)"
    assert verdict(decisions(rich)).startswith(said)
    assert f"**{said}" in _plain(story(rich))


def test_without_a_gain_it_says_so(fruitless: Loop) -> None:
    assert verdict(decisions(fruitless)) == "No lever was accepted (2 of 2 were tried)."
    assert "No lever was accepted" in story(fruitless)


def test_what_could_be_seen_comes_before_what_was_tried(rich: Loop) -> None:
    page = story(rich)
    places = [page.index(f"\n## {name}") for name in ("What could", "Path", "Levers", "Cost")]
    assert places == sorted(places)
    found = decisions(rich)
    assert found.detectable is not None
    assert f"a gain of {gain(found.detectable)[1:]} is found" in page


def test_each_lever_has_its_chapter(rich: Loop) -> None:
    page = story(rich)
    for lever in decisions(rich).levers:
        if lever.order is None:
            continue
        start = page.index(f"\n### {lever.order}\\. `{lever.id}`")
        chapter = page[start:].split("\n##")[1]
        for word in ("Why", "Changed", "Seen", "Verdict", "Cost"):
            assert f"- **{word}:** " in chapter


def test_gains_of_steps_are_never_summed_or_multiplied() -> None:
    truth = Truth({"a": 0.3, "b": 0.4}, seed=5)
    loop = loop_of(truth, spec(truth))
    steps = [x.effect for x in decisions(loop).levers if x.status == "accepted" and x.effect]
    assert len(steps) == 2
    page = story(loop)
    for total in (sum(steps), (1 + steps[0]) * (1 + steps[1]) - 1):
        assert gain(total) not in page
    assert "must not be added or multiplied" in page


def test_insignificant_levers_have_a_tilde(rich: Loop) -> None:
    found = {lever.id: lever for lever in decisions(rich).levers}
    null = found["null"]
    row = next(line for line in story(rich).splitlines() if line.startswith(f"| {null.order} | `n"))
    assert "| ~ |" in row
    assert interval(null.interval) in _plain(row)


def test_shrunk_effects_are_beside_the_raw_ones(rich: Loop) -> None:
    bf16 = next(lever for lever in decisions(rich).levers if lever.id == "bf16")
    assert bf16.effect is not None
    assert bf16.shrunk is not None
    assert 0 < bf16.shrunk < bf16.effect
    row = next(line for line in story(rich).splitlines() if line.startswith("| 1 | `bf16`"))
    assert f"| {gain(bf16.effect)} |" in row
    assert f"| {gain(bf16.shrunk)} |" in row


def test_not_tried_levers_say_why(rich: Loop) -> None:
    rest = story(rich).split("## Not tried")[1].split("\n## ")[0]
    assert "`gpu_only` | not eligible | needs a GPU" in rest


def test_hostile_text_is_inert(rich: Loop) -> None:
    page = story(rich)
    assert HOSTILE.splitlines()[1] not in page.splitlines()
    assert not re.search(r"(?<!\\)<", page)
    assert not re.search(r"(?<!\\)\[c", page)
    assert page.count("\\<script\\>") >= 3


def test_the_catalog_says_what_changes(root: Path) -> None:
    truth = Truth({"bf16": 0.3, "num_workers_2": -0.3})
    loop = loop_of(truth, spec(truth))
    with_catalog = Loop(loop.explored, loop.confirmed, "complete", load_levers(root, "orbit2"))
    assert "`training.dtype=bfloat16`" in story(with_catalog)
    assert "training.dtype" not in story(loop)


@pytest.mark.parametrize("steps", range(0, 30, 4))
def test_every_step_has_a_story(rich_spec: Any, steps: int) -> None:
    explored, _ = play(RICH, rich_spec, steps)
    page = story(Loop(explored[-1], None, "stopped-1"))
    assert page.startswith("# Optimizer loop: orbit2")
    assert "None" not in page


def test_the_command_is_quoted(rich: Loop) -> None:
    assert "--configfile 'a b/best.yaml'\n" in story(rich, "a b/best.yaml")
