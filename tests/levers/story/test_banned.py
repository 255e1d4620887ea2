"""`do_not_retry.json`: bans with conditions and evidence, as a catalog takes them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from perfproof.levers.story.banned import do_not_retry
from perfproof.levers.story.record import Loop
from perfproof.schema.levers import Verdict


def test_what_speaks_against_a_lever_bans_it(rich: Loop) -> None:
    bans = {ban.lever: ban for ban in do_not_retry(rich).bans}
    null = {"null"} & set(bans)
    assert set(bans) - null == {"wider", "silent", "slow", "broken", "diverging"}
    assert bans["wider"].verdict.verdict == "artifact"
    assert bans["broken"].verdict.verdict == "blocked"
    assert bans["silent"].verdict.verdict == "blocked"
    assert bans["slow"].verdict.verdict == "rejected"
    assert [run.rep for run in bans["broken"].runs] == [0, 1]
    assert "broken" in bans["broken"].verdict.evidence


def test_conditions_are_those_it_was_held_against(rich: Loop) -> None:
    """After bf16 was accepted the others are banned where bf16 is on."""
    found = {ban.lever: ban for ban in do_not_retry(rich).bans}
    for ban in found.values():
        expected = "bfloat16" if ban.against == "bf16" else "float32"
        assert ban.verdict.fingerprint.dtype == expected
    assert "bf16" in {ban.against for ban in found.values()}


def test_with_a_date_an_entry_is_a_catalog_verdict(rich: Loop) -> None:
    for ban in do_not_retry(rich).bans:
        entry = {**ban.verdict.model_dump(mode="json"), "date": "2026-01-31"}
        assert Verdict.model_validate(entry).evidence == ban.verdict.evidence


def test_without_a_date_a_catalog_asks_for_it(rich: Loop) -> None:
    entry = do_not_retry(rich).bans[0].verdict.model_dump(mode="json")
    with pytest.raises(ValidationError, match="date"):
        Verdict.model_validate(entry)
