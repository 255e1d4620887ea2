"""Files of more than one run where one was expected, and files that changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perfproof.core.files import digest_file
from perfproof.foms.assemble import foms_of
from perfproof.schema.base import Reason
from perfproof.schema.foms import Foms, LossVerdict
from perfproof.schema.run import Artifact, Inventory, Role
from tests.foms.logs import (
    Step,
    edm_log,
    foms,
    hydragnn_config,
    inventory,
    manifest,
    orbit2_config,
    three_epochs_of_bars,
)

STEPS = edm_log([[Step(1.0, 8)] * 4] * 2)
BARS = three_epochs_of_bars(50, "1.50s/it")
MANIFEST = manifest().model_dump_json()


def of(root: Path, files: Mapping[str, tuple[Role, int | None, str]]) -> Foms:
    """Figures of files in folders, with the roles and ranks given."""
    artifacts = []
    for name, (role, rank, text) in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        reasons = {} if rank is not None else {"rank": Reason.NOT_RECORDED}
        digest, size = digest_file(path), len(text)
        artifacts.append(
            Artifact(
                path=name, role=role, rank=rank, size_bytes=size, blake3=digest, reasons=reasons
            )
        )
    return foms_of(Inventory(run_id="run", root=str(root), artifacts=artifacts))


def refused(found: Foms) -> list[tuple[str, str]]:
    """The problem lines of figures that were all refused."""
    for name in ("throughput_samples_per_s", "step_time_s", "epoch_time_s", "samples_per_epoch"):
        assert found.reasons[name] is Reason.DISAGREES, name
    for name in ("final_loss", "non_finite_count", "hbm_reserved_bytes"):
        assert found.reasons[name] is Reason.DISAGREES, name
    assert (found.steady_step_times_s, found.loss_curve) == ([], [])
    assert found.loss_verdict is LossVerdict.UNKNOWN
    assert found.integrity.reasons["step_time_source"] is Reason.DISAGREES
    return [(problem.where, problem.what) for problem in found.problems]


def test_two_logs_of_the_same_rank(tmp_path: Path) -> None:
    other = STEPS.replace("1.0000 sec", "9.0000 sec")
    logs = {"a/log_rank0.txt": (Role.LOG, 0, STEPS), "b/log_rank0.txt": (Role.LOG, 0, other)}
    assert refused(of(tmp_path, logs)) == [
        (
            "a/log_rank0.txt and b/log_rank0.txt",
            "logs of several runs; expected one log a rank, of one run",
        )
    ]


def test_two_merged_logs_of_the_same_name(tmp_path: Path) -> None:
    logs = {
        "a/train.log": (Role.LOG, None, STEPS),
        "b/train.log": (Role.LOG, None, STEPS + "\n"),
    }
    assert refused(of(tmp_path, logs))[0][0] == "a/train.log and b/train.log"


def test_a_copy_of_a_log_is_read_once(tmp_path: Path) -> None:
    text = STEPS.replace("tensor(0.5", "tensor(nan", 1)
    logs = {"a/log_rank0.txt": (Role.LOG, 0, text), "b/log_rank0.txt": (Role.LOG, 0, text)}
    found = of(tmp_path, logs)
    assert (found.non_finite_count, found.problems) == (1, [])
    assert found.throughput_samples_per_s == pytest.approx(64)


def test_two_manifests(tmp_path: Path) -> None:
    files = {
        "log_rank0.txt": (Role.LOG, 0, STEPS),
        "a/manifest.json": (Role.MANIFEST, None, MANIFEST),
        "b/manifest.json": (Role.MANIFEST, None, MANIFEST.replace('"n1"', '"n9"')),
    }
    found = of(tmp_path, files)
    assert refused(found) == [
        (
            "a/manifest.json and b/manifest.json",
            "manifest: another run each; expected one value, so one run",
        )
    ]
    for name in ("model", "workload", "cluster", "node_list", "recipe_digest", "device_name"):
        assert found.integrity.reasons[name] is Reason.DISAGREES
    same = {**files, "b/manifest.json": (Role.MANIFEST, None, MANIFEST)}
    assert of(tmp_path / "same", same).problems == []


def test_two_configurations_that_contradict_each_other(tmp_path: Path) -> None:
    files = {
        "log_rank0.txt": (Role.LOG, 0, BARS),
        "meta.json": (Role.META, None, '{"ranks": 2}'),
        "config.json": (Role.CONFIG, None, hydragnn_config(32)),
        "old/config.json": (Role.CONFIG, None, hydragnn_config(64, precision="bf16")),
    }
    found = of(tmp_path, files)
    names = ("throughput_samples_per_s", "epoch_time_s", "samples_per_epoch")
    assert [found.reasons[name] for name in names] == [Reason.DISAGREES] * 3
    assert found.integrity.reasons["nominal_batch_per_rank"] is Reason.DISAGREES
    assert found.integrity.reasons["dtype"] is Reason.DISAGREES
    whats = [(problem.where, problem.what) for problem in found.problems]
    shown = "batch_size: 32 (config.json), 64 (old/config.json); expected one value, so one run"
    assert whats[0] == ("config.json", shown)


def test_two_launch_records_that_contradict_each_other(tmp_path: Path) -> None:
    bare = STEPS[STEPS.index("epoch") :]
    files = {
        "log_rank0.txt": (Role.LOG, 0, bare),
        "a/meta.json": (Role.META, None, '{"ranks": 1, "model": "x"}'),
        "b/meta.json": (Role.META, None, '{"ranks": 8, "model": "y"}'),
    }
    found = of(tmp_path, files)
    assert found.reasons["throughput_samples_per_s"] is Reason.DISAGREES
    assert found.integrity.reasons["ranks"] is Reason.DISAGREES
    assert found.integrity.reasons["model"] is Reason.DISAGREES


def test_batch_of_configuration_and_manifest(tmp_path: Path) -> None:
    files = {"log_rank0.txt": BARS, "config.json": hydragnn_config(32), "manifest.json": MANIFEST}
    found = foms(tmp_path, {**files, "manifest.json": MANIFEST.replace("orbit2", "hydragnn")})
    assert found.reasons["throughput_samples_per_s"] is Reason.DISAGREES
    assert any(
        problem.what == "samples a rank a step: 32 (config), 8 (manifest); expected one value"
        for problem in found.problems
    )


def test_a_manifest_of_another_model_than_the_logs(tmp_path: Path) -> None:
    found = foms(tmp_path, {"log_rank0.txt": BARS, "manifest.json": MANIFEST})
    assert refused(found) == [
        ("log_rank0.txt", "log of hydragnn, manifest of orbit2; expected one run's files")
    ]


TWO_TRAINERS = (
    "log_rank0.txt",
    "steps or epochs of hydragnn and orbit2; expected one trainer's, so one run",
)


@pytest.mark.parametrize("filler", [0, 3 << 20])
@pytest.mark.parametrize("texts", [(STEPS, BARS), (BARS, STEPS)])
def test_two_trainers_in_one_log(tmp_path: Path, filler: int, texts: tuple[str, str]) -> None:
    text = texts[0] + ("x" * 1023 + "\n") * (filler >> 10) + texts[1]
    assert refused(foms(tmp_path, {"log_rank0.txt": text})) == [TWO_TRAINERS]


@pytest.mark.parametrize("name", ["log_rank0.txt", "config.yaml", "manifest.json"])
def test_a_file_that_changed_since_the_inventory_is_not_used(tmp_path: Path, name: str) -> None:
    files = {"log_rank0.txt": STEPS, "config.yaml": orbit2_config(8), "manifest.json": MANIFEST}
    foms(tmp_path, files)
    listed = inventory(tmp_path)
    (tmp_path / name).write_text(files[name].replace("8", "4"))
    found = foms_of(listed)
    what = "changed since the inventory was taken, so not used; expected the same bytes"
    assert [(p.where, p.what) for p in found.problems] == [(name, what)]
    if name == "log_rank0.txt":
        assert found.reasons["throughput_samples_per_s"] is Reason.UNREADABLE
    else:
        assert found.throughput_samples_per_s == pytest.approx(64)
