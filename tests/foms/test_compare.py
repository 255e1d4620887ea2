"""Two sides held against each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import write_record
from perfproof.foms.compare import compare, main
from perfproof.schema.base import Reason
from perfproof.schema.foms import Foms, LossVerdict, Method
from tests.foms.logs import Step, edm_log, foms, manifest, orbit2_config

RESERVED = "rank 0 torch.cuda.memory_reserved: 100.0GB\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Foms:
    """A whole run, of which tests change single fields."""
    files = {
        "log_rank0.txt": edm_log([[Step(1.0, 8, loss)] * 4 for loss in (2, 1)]) + RESERVED,
        "config.yaml": orbit2_config(8),
        "manifest.json": manifest().model_dump_json().replace('"batch_size":1,', '"batch_size":8,'),
    }
    return foms(tmp_path_factory.mktemp("base"), files)


def runs(base: Foms, *throughputs: float, **integrity: Any) -> list[Foms]:
    changed = base.integrity.model_copy(update=integrity)
    return [
        base.model_copy(update={"throughput_samples_per_s": value, "integrity": changed})
        for value in throughputs
    ]


def test_no_ratio_is_ever_of_unequal_work(base: Foms) -> None:
    fields: dict[str, Any] = {
        "model": "other",
        "workload": "embedded",
        "ranks": 4,
        "nominal_batch_per_rank": 16,
        "realised_batches_per_rank": [4, 8],
        "batches_per_epoch": 5,
        "samples_per_epoch": 999,
        "partial_step_fraction": 0.2,
        "dtype": "float32",
        "step_time_source": "step_record",
        "node_list": ["n1", "n3"],
        "device_name": "MI300X",
        "hbm_reserved_bytes": round(100 * 2**30 * 1.06),
    }
    for name, value in fields.items():
        found = compare(runs(base, 1, 1.01), runs(base, 2, 2.02, **{name: value}))
        assert found.verdict == "not_comparable"
        assert [line.split(":")[0] for line in found.differs] == [name]
        assert (found.ratio, found.reasons["ratio"]) == (None, Reason.DISAGREES)
        null = compare(runs(base, 1), runs(base, 1, **{name: None}))
        assert [line.split(":")[0] for line in null.differs] == [name]
        assert null.differs[0].endswith("b null")
        both = compare(runs(base, 1, 1.1, **{name: None}), runs(base, 1, 1.1, **{name: None}))
        assert both.comparable
        meant = compare(
            runs(base, 1, 1.01), runs(base, 2, 2.02, **{name: value}), allow=frozenset({name})
        )
        assert meant.verdict == "better"


def test_what_may_differ_a_little_or_in_order(base: Foms) -> None:
    other = runs(
        base,
        1,
        node_list=["n1", "n2"],
        hbm_reserved_bytes=round(100 * 2**30 * 1.04),
        partial_step_fraction=0.004,
        recipe_digest="another",
        steady_steps=99,
    )
    assert compare(runs(base, 1), other).differs == []


def test_repetitions_must_agree_among_themselves(base: Foms) -> None:
    mixed = runs(base, 1) + runs(base, 1, node_list=["n7"])
    assert compare(mixed, runs(base, 1)).differs == ["node_list: a1 n2,n1, a2 n7"]
    recipes = runs(base, 1) + runs(base, 1, recipe_digest="d2")
    assert compare(runs(base, 1), recipes).differs == ["recipe_digest: b1 d1, b2 d2"]


def test_methods_must_be_known_and_equal(base: Foms) -> None:
    nominal = base.model_copy(update={"throughput_method": Method.NOMINAL_BATCH})
    assert not compare([base], [nominal]).comparable
    unknown = base.model_copy(update={"throughput_method": None})
    found = compare([unknown], [unknown])
    assert found.differs == ["throughput_method: a null, b null"]
    assert compare([unknown], [unknown], metric="step_time_s").comparable


def test_a_diverged_run_is_compared_with_nothing(base: Foms) -> None:
    changes = {"loss_verdict": LossVerdict.NON_FINITE, "non_finite_count": 7}
    diverged = base.model_copy(update=changes)
    found = compare([base], [diverged, base])
    assert found.differs == ["loss_verdict: b has 7 non-finite losses in 1 of 2 runs"]


def test_verdicts(base: Foms) -> None:
    low, high = runs(base, 100, 101, 99), runs(base, 110, 111, 109)
    assert compare(low, high).verdict == "better"
    assert compare(high, low).verdict == "worse"
    assert compare(low, runs(base, 101, 100, 103)).verdict == "~"
    assert compare(low, runs(base, 110)).verdict == "better"
    single = compare(runs(base, 100), runs(base, 110))
    assert (single.verdict, single.interval) == ("unknown", None)
    assert single.reasons["interval"] is Reason.TOO_FEW_VALUES
    assert single.ratio == pytest.approx(1.1)


def test_for_a_time_lower_is_better(base: Foms) -> None:
    def timed(mean: float) -> Foms:
        assert base.step_time_s is not None
        return base.model_copy(
            update={"step_time_s": base.step_time_s.model_copy(update={"mean": mean})}
        )

    found = compare([timed(1.0), timed(1.01)], [timed(0.5), timed(0.51)], metric="step_time_s")
    assert (found.direction, found.verdict) == ("lower", "better")


def test_a_missing_value_keeps_its_reason(base: Foms) -> None:
    found = compare([base], [base], metric="epoch_time_s")
    assert found.verdict == "unknown"
    assert found.reasons["ratio"] is Reason.NOT_PRINTED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "throughput"}, "throughput_samples_per_s"),
        ({"allow": frozenset({"rank"})}, "'ranks'"),
        ({"confidence": 1.5}, "expected a number between 0 and 1"),
        ({"b": []}, "at least one run on each side"),
    ],
)
def test_bad_questions(base: Foms, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as fault:
        compare(**{"a": [base], "b": [base], **change})
    assert message in str(fault.value)


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["compare", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_command_line(
    base: Foms,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = []
    for number, run in enumerate(runs(base, 100, 101, 100.5, 101.5)):
        paths.append(str(tmp_path / f"{number}.json"))
        write_record(Path(paths[-1]), run)
    assert run_main(monkeypatch, *paths[:2], "--versus", *paths[2:]) == 0
    text, status = capsys.readouterr().out.splitlines()
    assert "100.499 -> 100.999 samples/s (2 vs 2 runs) ratio 1.0050 [" in text
    assert text.endswith("~")
    assert status == "STATUS=ok; reason=verdict ~"
    assert run_main(monkeypatch, paths[0], "--versus", paths[1], "--json") == 0
    *lines, status = capsys.readouterr().out.splitlines()
    assert json.loads("".join(lines))["verdict"] == "unknown"
    assert run_main(monkeypatch, paths[0], "--versus", str(tmp_path / "none.json")) == 1
    assert "none.json: no such file; expected a JSON file" in capsys.readouterr().out
