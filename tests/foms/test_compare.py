"""Two sides held against each other."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_record
from perfproof.foms.compare import compare, main
from perfproof.schema.base import Reason
from perfproof.schema.foms import Comparison, Foms, LossVerdict, Method
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


numbers = itertools.count()


def other(run: Foms, **changes: Any) -> Foms:
    """A run of its own: repetitions never agree in every step."""
    return run.model_copy(update={"steady_step_times_s": [1.0 + next(numbers)], **changes})


def runs(base: Foms, *throughputs: float, **integrity: Any) -> list[Foms]:
    changed = base.integrity.model_copy(update=integrity)
    return [other(base, throughput_samples_per_s=value, integrity=changed) for value in throughputs]


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
        unknown = [f"{name}: unknown on both sides"] if name == "ranks" else []
        assert both.differs == unknown
        meant = compare(
            runs(base, 1, 1.01), runs(base, 2, 2.02, **{name: value}), allow=frozenset({name})
        )
        assert meant.verdict == "better"


def test_what_may_differ_a_little_or_in_order(base: Foms) -> None:
    others = runs(
        base,
        1,
        node_list=["n1", "n2"],
        hbm_reserved_bytes=round(100 * 2**30 * 1.04),
        partial_step_fraction=0.004,
        recipe_digest="another",
        steady_steps=99,
    )
    assert compare(runs(base, 1), others).differs == []


def test_repetitions_must_agree_among_themselves(base: Foms) -> None:
    mixed = runs(base, 1) + runs(base, 1, node_list=["n7"])
    assert compare(mixed, runs(base, 1)).differs == ["node_list: a1 n2,n1, a2 n7"]
    recipes = runs(base, 1) + runs(base, 1, recipe_digest="d2")
    assert compare(runs(base, 1), recipes).differs == ["recipe_digest: b1 d1, b2 d2"]


def test_methods_must_be_known_and_equal(base: Foms) -> None:
    nominal = other(base, throughput_method=Method.NOMINAL_BATCH)
    assert not compare([base], [nominal]).comparable
    unknown, too = (other(base, throughput_method=None) for _ in range(2))
    found = compare([unknown], [too])
    assert found.differs == ["throughput_method: a null, b null"]
    assert compare([unknown], [too], metric="step_time_s").comparable


def test_a_diverged_run_is_compared_with_nothing(base: Foms) -> None:
    diverged = other(base, loss_verdict=LossVerdict.NON_FINITE, non_finite_count=7)
    found = compare([base], [diverged, other(base)])
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
        return other(base, step_time_s=base.step_time_s.model_copy(update={"mean": mean}))

    found = compare([timed(1.0), timed(1.01)], [timed(0.5), timed(0.51)], metric="step_time_s")
    assert (found.direction, found.verdict) == ("lower", "better")


def test_a_missing_value_keeps_its_reason(base: Foms) -> None:
    found = compare([base], [other(base)], metric="epoch_time_s")
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
        compare(**{"a": [base], "b": [other(base)], **change})
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
    paths: list[str] = []
    for number, run in enumerate(runs(base, 100, 101, 100.5, 101.5)):
        paths.append(str(tmp_path / f"{number}"))
        write_record(tmp_path / f"{number}" / "foms.json", run)
    # A run is its directory or its foms.json; candidates come first, references after --versus.
    files = [f"{path}/foms.json" for path in paths[2:]]
    assert run_main(monkeypatch, *paths[:2], "--versus", *files) == 0
    text, status = capsys.readouterr().out.splitlines()
    assert text.startswith("throughput_samples_per_s: 100.499 against 100.999 samples/s ")
    assert "(geometric means of 2 and 2 runs): ratio 0.9950 [" in text
    assert text.endswith("at 95%: ~ (the interval holds 1)")
    assert status == "STATUS=ok; reason=verdict ~"


def test_one_run_on_each_side_has_no_interval_and_a_record_is_written(
    base: Foms,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one, two = (
        saved(tmp_path / name, run) for name, run in zip("ab", runs(base, 1, 2), strict=True)
    )
    out = tmp_path / "comparison.json"
    assert run_main(monkeypatch, one, "--versus", two, "--out", str(out)) == 0
    text, _ = capsys.readouterr().out.splitlines()
    assert text.endswith(
        "ratio 0.5000: unknown: one run on each side has no interval; repeat at least one"
    )
    assert read_record(out, Comparison).ratio == pytest.approx(0.5)


def test_what_differs_comes_with_the_way_to_allow_it(
    base: Foms,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = saved(tmp_path / "a", runs(base, 1, ranks=4, dtype="float32")[0])
    two = saved(tmp_path / "b", runs(base, 2)[0])
    assert run_main(monkeypatch, one, "--versus", two) == 0
    text, status = capsys.readouterr().out.splitlines()
    assert ": not comparable: ranks: a 8, b 4; dtype: a bfloat16, b float32 " in text
    assert text.endswith("(if meant: --allow dtype --allow ranks)")
    assert status == "STATUS=ok; reason=verdict not_comparable"
    assert run_main(monkeypatch, one, "--allow", "dtype", "--allow", "ranks", "--versus", two) == 0
    assert "ratio 0.5000" in capsys.readouterr().out


def test_one_run_given_twice_is_refused(
    base: Foms,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(InputError, match="are one run; expected each run once"):
        compare([base], [base.model_copy(update={"run_id": "a copy"})])
    one = saved(tmp_path / "a", base)
    assert run_main(monkeypatch, one, "--versus", f"{one}/foms.json") == 1
    assert "are one run" in capsys.readouterr().out


def test_a_run_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    none = str(tmp_path / "none.json")
    assert run_main(monkeypatch, str(tmp_path / "empty"), "--versus", none) == 1
    assert "none.json: no such file; expected a JSON file" in capsys.readouterr().out


def saved(directory: Path, run: Foms) -> str:
    """The directory of a run, with its figures."""
    write_record(directory / "foms.json", run)
    return str(directory)


@pytest.mark.parametrize(
    ("metric", "unknown", "line"),
    [
        (
            "throughput_samples_per_s",
            ("nominal_batch_per_rank", "realised_batches_per_rank"),
            "nominal_batch_per_rank: unknown on both sides (like realised_batches_per_rank)",
        ),
        ("throughput_samples_per_s", ("ranks",), "ranks: unknown on both sides"),
        (
            "step_time_s",
            ("batches_per_epoch", "samples_per_epoch"),
            "batches_per_epoch: unknown on both sides (like samples_per_epoch)",
        ),
        ("throughput_samples_per_s", ("batches_per_epoch", "samples_per_epoch"), None),
        ("step_time_s", ("samples_per_epoch",), None),
    ],
)
def test_work_that_no_run_tells_of_is_not_taken_to_be_equal(
    base: Foms, metric: str, unknown: tuple[str, ...], line: str | None
) -> None:
    a, b = (runs(base, 1, 1.1, **dict.fromkeys(unknown)) for _ in range(2))
    found = compare(a, b, metric=metric)
    assert found.differs == ([line] if line else [])
    if line:
        assert (found.verdict, found.ratio) == ("not_comparable", None)
    assert compare(a, b, metric=metric, allow=frozenset(unknown[-1:])).comparable
