from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.config import load_cluster, load_levers
from perfproof.core.errors import InputError
from perfproof.levers.eligible import Facts, eligibility, matches, standing
from perfproof.schema.config import Workload
from perfproof.schema.levers import Fingerprint, Lever, Requires, Verdict
from perfproof.training.resolve import resolve
from tests.levers.runs import CPU, SITE, lever, manifest, without_rank0

TODAY = datetime.date(2026, 12, 1)
MI355X = Fingerprint(
    model="hydragnn",
    workload=Workload.UPSTREAM,
    arch="gfx950",
    dtype="float64",
    torch="2.10.0+rocm7.2.2",
    rocm="7.2.53210-abc",
    nodes=2,
    ranks=16,
    batch_size=400,
)
NOTHING = Fingerprint()


def facts(known: Fingerprint = MI355X, vendor: Any = "amd", ran: bool = True) -> Facts:
    return Facts(known, vendor, frozenset({"compile", "float32"}), ran)


def changed(**fields: Any) -> Facts:
    return facts(MI355X.model_copy(update=fields))


def shipped(root: Path, model: str, name: str) -> Lever:
    return next(one for one in load_levers(root, model).levers if one.id == name)


def blocked(date: str = "2026-05-23", verdict: str = "blocked", **where: Any) -> Verdict:
    scope = {"model": "hydragnn", "arch": "gfx950", "dtype": "float64"} | where
    expires = scope.pop("expires", None)
    return Verdict.model_validate(
        {
            "verdict": verdict,
            "fingerprint": scope,
            "evidence": f"seen on\n {date}",
            "date": date,
            "expires": expires,
        }
    )


@pytest.mark.parametrize(
    ("seen", "run", "same"),
    [
        ({"torch": "2.10"}, {"torch": "2.10.0+rocm7.2"}, True),
        ({"torch": "2.1"}, {"torch": "2.10.0"}, False),
        ({"torch": "2.10.0"}, {"torch": "2.10"}, False),
        ({"rocm": "7.2"}, {"rocm": "7.2.53210-abc"}, True),
        ({"rocm": "7.2"}, {"rocm": "7.20"}, False),
        ({"driver": "6.10"}, {"driver": "6.10.5"}, True),
        ({"arch": "gfx950"}, {}, False),
        ({"torch": "2.10"}, {}, False),
        ({"arch": "gfx95"}, {"arch": "gfx950"}, False),
        ({"batch_size": 400}, {"batch_size": 800}, False),
        ({}, {"arch": "sm_90"}, True),
        ({"workload": "upstream"}, {"workload": "embedded"}, False),
    ],
)
def test_a_verdict_matches_by_what_it_names(
    seen: dict[str, Any], run: dict[str, Any], same: bool
) -> None:
    assert matches(Fingerprint(**seen), Fingerprint(**run)) is same


def test_a_block_names_its_evidence_and_its_date() -> None:
    why = eligibility(lever(verdicts=[blocked()]), facts(), TODAY)
    assert why == "blocked since 2026-05-23: seen on 2026-05-23"


@pytest.mark.parametrize("verdict", ["rejected", "blocked", "tabled", "artifact"])
def test_closing_verdicts_close(verdict: str) -> None:
    assert eligibility(lever(verdicts=[blocked(verdict=verdict)]), facts(), TODAY)


@pytest.mark.parametrize("verdict", ["accepted", "neutral", "diagnostic", "experimental"])
def test_other_verdicts_leave_the_lever_open(verdict: str) -> None:
    assert eligibility(lever(verdicts=[blocked(verdict=verdict)]), facts(), TODAY) is None


@pytest.mark.parametrize(("today", "holds"), [("2026-11-30", True), ("2026-12-01", False)])
def test_a_verdict_expires(today: str, holds: bool) -> None:
    one = lever(verdicts=[blocked(expires="2026-12-01")])
    why = eligibility(one, facts(), datetime.date.fromisoformat(today))
    assert bool(why) is holds
    assert why is None or "until 2026-12-01" in why


def test_without_a_date_what_expires_does_not_hold() -> None:
    assert eligibility(lever(verdicts=[blocked(expires="2099-01-01")]), facts()) is None
    assert eligibility(lever(verdicts=[blocked()]), facts())


def test_the_newest_verdict_that_matches_decides() -> None:
    old, new = blocked("2026-01-01"), blocked("2026-02-01", verdict="neutral")
    assert standing(lever(verdicts=[new, old]), MI355X, TODAY) == new
    assert eligibility(lever(verdicts=[old, new]), facts(), TODAY) is None
    elsewhere = blocked("2026-03-01", verdict="neutral", arch="gfx942")
    assert eligibility(lever(verdicts=[old, elsewhere]), facts(), TODAY)
    same_day = blocked("2026-02-01")
    for verdicts in ([new, same_day], [same_day, new]):
        assert standing(lever(verdicts=verdicts), MI355X, TODAY) == same_day


@pytest.mark.parametrize("name", ["tunable_op_live", "tunable_op_warmup_then_use"])
def test_tunable_op_is_blocked_where_it_faulted_and_nowhere_else(root: Path, name: str) -> None:
    tuning = shipped(root, "hydragnn", name)
    tuning = tuning.model_copy(update={"requires": Requires(vendor=["amd"])})
    assert "memory access fault" in str(eligibility(tuning, facts(), TODAY)).lower()
    elsewhere = [
        {"dtype": "float32"},
        {"dtype": "bfloat16"},
        {"arch": "gfx942"},
        {"torch": "2.11.0+rocm7.2"},
        {"rocm": "7.3.1"},
    ]
    assert [eligibility(tuning, changed(**other), TODAY) for other in elsewhere] == [None] * 5
    assert eligibility(shipped(root, "orbit2", "tunable_op_live"), facts(NOTHING), TODAY) is None


@pytest.mark.parametrize(
    ("name", "feature", "word"),
    [
        ("torch_compile_e3nn", "compile", "allow_in_graph on autograd.grad among them"),
        ("torch_jit_script", "jit_script", "dictionary expansion"),
    ],
)
def test_a_block_of_software_holds_for_the_version_it_was_seen_on(
    root: Path, name: str, feature: str, word: str
) -> None:
    compiled = shipped(root, "hydragnn", name)

    def why(torch: str) -> str | None:
        known = MI355X.model_copy(update={"torch": torch})
        return eligibility(compiled, Facts(known, "amd", frozenset({feature}), True), TODAY)

    assert word in str(why("2.10.1+rocm7.2"))
    assert why("2.14.0+rocm7.2") is None


def test_a_smaller_batch_than_the_phantoms_is_not_judged_by_them(root: Path) -> None:
    workers = shipped(root, "orbit2", "num_workers_4")
    where = workers.verdicts[0].fingerprint.model_copy(update={"torch": "2.10.0"})
    assert "129 %" in str(eligibility(workers, facts(where), TODAY))
    other = where.model_copy(update={"batch_size": 2048})
    assert eligibility(workers, facts(other), TODAY) is None


def test_batch_800_is_no_regressor(root: Path) -> None:
    """Its epochs were longer because they held twice the samples."""
    batch = shipped(root, "hydragnn", "batch_800")
    assert eligibility(batch, facts(), TODAY) is None
    verdict = standing(batch, MI355X, TODAY)
    assert verdict is not None
    assert verdict.verdict == "experimental"
    assert "twice the samples" in verdict.evidence


def test_an_accepted_gain_below_the_noise_is_neutral(root: Path) -> None:
    verdict = standing(shipped(root, "hydragnn", "rccl_high_priority"), MI355X, TODAY)
    assert verdict is not None
    assert verdict.verdict == "neutral"


REQUIREMENTS: list[tuple[dict[str, Any], Facts, str]] = [
    ({"gpu": True}, facts(vendor="none"), "needs a GPU of amd or nvidia, found none"),
    ({"vendor": ["nvidia"]}, facts(), "needs vendor nvidia, found amd"),
    ({"arch": ["gfx942", "gfx90a"]}, facts(), "needs arch gfx942 or gfx90a, found gfx950"),
    ({"dtype": ["float32"]}, facts(), "needs dtype float32, found float64"),
    ({"workload": ["embedded"]}, facts(), "needs workload embedded, found upstream"),
    ({"nodes_min": 4}, facts(), "needs 4 nodes or more, found 2"),
    ({"ranks_min": 17}, facts(), "needs 17 ranks or more, found 16"),
    (
        {"features": ["compile", "conv_pad"]},
        facts(),
        "needs 'conv_pad', which the upstream trainer does not offer",
    ),
]


@pytest.mark.parametrize(("requires", "run", "why"), REQUIREMENTS)
def test_a_requirement_that_is_not_met_is_said(
    requires: dict[str, Any], run: Facts, why: str
) -> None:
    assert eligibility(lever(requires=requires), run, TODAY) == why


@pytest.mark.parametrize(
    "requires",
    [
        {},
        {"gpu": True, "vendor": ["amd", "nvidia"], "arch": ["gfx950"], "dtype": ["float64"]},
        {"workload": ["upstream"], "nodes_min": 2, "ranks_min": 16, "features": ["compile"]},
    ],
)
def test_requirements_that_are_met_say_nothing(requires: dict[str, Any]) -> None:
    assert eligibility(lever(requires=requires), facts(), TODAY) is None


@pytest.mark.parametrize("requires", [r for r, _, _ in REQUIREMENTS if "features" not in r])
def test_before_the_run_what_is_not_known_stays_open_and_after_it_is_not_met(
    requires: dict[str, Any],
) -> None:
    one = lever(requires=requires)
    assert eligibility(one, facts(NOTHING, None, ran=False), TODAY) is None
    after = eligibility(one, facts(NOTHING, None, ran=True), TODAY)
    assert after is not None
    assert after.endswith("found nothing that says")


@pytest.mark.parametrize("ran", [False, True])
def test_a_verdict_does_not_hold_for_a_run_that_does_not_say(ran: bool) -> None:
    assert eligibility(lever(verdicts=[blocked()]), facts(NOTHING, ran=ran), TODAY) is None


def test_conv_pad_changes_the_model(root: Path) -> None:
    padded = shipped(root, "orbit2", "conv_pad_internal_width")
    assert padded.changes_model


def test_facts_before_and_after_a_run() -> None:
    run = manifest(device=CPU, effects={"batch_size": "4"})
    before, after = Facts.before_the_run(run.resolved, SITE), Facts.of_a_run(run, SITE)
    assert (before.fingerprint.arch, before.vendor, before.ran) == (None, "amd", False)
    assert (after.fingerprint.arch, after.vendor, after.ran) == ("cpu", "none", True)
    assert after.fingerprint.batch_size == 4
    assert Facts.of_a_run(without_rank0(run), SITE) == before
    alone = SITE.model_copy(update={"vendor": "none"})
    assert Facts.before_the_run(run.resolved, alone).fingerprint.arch == "cpu"


@pytest.mark.parametrize("model", ["hydragnn", "orbit2"])
@pytest.mark.parametrize("cluster", ["local", "mi355x"])
def test_what_cannot_be_resolved_is_not_eligible(root: Path, model: str, cluster: str) -> None:
    site = load_cluster(root, cluster)
    plain = resolve(root, model=model, trial="baseline", cluster=cluster, nodes=1)
    run = Facts.before_the_run(plain, site)
    for one in load_levers(root, model).levers:
        if eligibility(one, run, TODAY) is None:
            resolve(root, model=model, trial=one.id, cluster=cluster, nodes=1)
        elif set(one.requires.features) - run.features or one.id == "batch_800":
            with pytest.raises(InputError):
                resolve(root, model=model, trial=one.id, cluster=cluster, nodes=1)


def test_on_a_laptop_the_levers_of_gpus_stay_out(root: Path) -> None:
    plain = resolve(root, model="orbit2", trial="baseline", cluster="local", nodes=1)
    run = Facts.before_the_run(plain, load_cluster(root, "local"))
    levers = load_levers(root, "orbit2").levers
    assert [one.id for one in levers if eligibility(one, run, TODAY) is None] == [
        "batch_16",
        "num_workers_2",
        "num_workers_4",
        "persistent_workers",
        "bf16",
        "torch_compile_edm",
        "sdpa_efficient_vs_math",
        "sdpa_flash",
        "sdpa_math",
        "activation_checkpointing_toggle",
        "omp_threads_2",
        "gc_off",
        "malloc_keep_freed",
        "null_unread_variable",
    ]
