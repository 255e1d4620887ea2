"""Guards and gates of the host, in this process."""

from __future__ import annotations

import builtins
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from perfproof.core.files import validate
from perfproof.schema.run import RankReport
from perfproof.training.upstream.host.facts import Realised
from perfproof.training.upstream.host.hooks import (
    CheckpointGate,
    WorldGuard,
    keep_workers,
    select_sdpa,
)
from perfproof.training.upstream.host.plan import HostError, Plan, Window, read_plan
from perfproof.training.upstream.host.ranks import (
    Rank,
    address_environment,
    identify,
    meeting_point,
)
from perfproof.training.upstream.host.steps import HostClock, Recorder
from perfproof.training.upstream.host.trace import Profiler, collect


def plan(**changes: Any) -> Plan:
    fields: dict[str, Any] = {
        "trainer": "orbit2",
        "ranks": 1,
        "dtype": "float32",
        "batch_size": 2,
        "num_workers": 0,
        "persistent_workers": False,
        "batches_per_epoch": 4,
        "epochs": 3,
        "profiled_epoch": 2,
        "window": Window(1, 1, 2, True, False),
        "save_checkpoints": False,
        "sdpa_backend": "default",
        "compile_mode": None,
        "preload": [],
        "shims": [],
        "env": ["OMP_NUM_THREADS"],
        "versions": {
            "driver": None,
            "perfproof_commit": None,
            "perfproof_dirty": None,
            "trainer_commit": "abc",
            "trainer_dirty": True,
        },
    }
    return Plan(**fields | changes)


@pytest.fixture
def process_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test hangs on `init_process_group` is taken off again."""
    monkeypatch.setattr(dist, "init_process_group", dist.init_process_group)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for made in (plan(), plan(window=None, profiled_epoch=None)):
        path.write_text(made.to_json())
        assert read_plan(path) == made


def test_identity_comes_from_the_launcher() -> None:
    assert identify({"RANK": "1", "WORLD_SIZE": "2"}, plan(ranks=2)) == Rank(1, 2)
    with pytest.raises(HostError, match="started 1 rank"):
        identify({"RANK": "0", "WORLD_SIZE": "1"}, plan(ranks=2))
    with pytest.raises(HostError, match="RANK and WORLD_SIZE"):
        identify({"RANK": "0"}, plan())


def test_addresses() -> None:
    assert address_environment({})["HOSTNAME"] == "127.0.0.1"
    assert address_environment({"MASTER_ADDR": "n1"})["HYDRAGNN_MASTER_ADDR"] == "n1"
    both = {"MASTER_ADDR": "n1", "MASTER_PORT": "1"}
    assert meeting_point(both | {"OTHER": "x"}) == both
    assert meeting_point({"MASTER_ADDR": "n1"}) == {}


@pytest.mark.usefixtures("process_groups")
def test_a_trainer_that_trains_alone_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setenv("MASTER_ADDR", "nowhere.invalid")
    guard = WorldGuard(Rank(0, 2), {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
    with pytest.raises(HostError, match="takes itself for rank 0 of 1"):
        dist.init_process_group("gloo", rank=0, world_size=1)
    assert os.environ["MASTER_PORT"] == port
    with pytest.raises(HostError, match="no process group"):
        guard.check()


@pytest.mark.usefixtures("process_groups")
def test_the_right_world_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    for name in meeting:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")
    guard = WorldGuard(Rank(0, 1), meeting)
    dist.init_process_group("gloo", rank=0, world_size=1)
    guard.check()


def test_host_errors_pass_a_trainers_except_clause() -> None:
    assert not issubclass(HostError, builtins.Exception)


def test_checkpoints_are_dropped_once_training_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "save", torch.save)
    recorder = Recorder(0, HostClock, lambda line: None)
    gate = CheckpointGate(recorder)
    torch.save({}, tmp_path / "initial.pth")
    recorder.epoch_begins(False)
    torch.save({}, tmp_path / "epoch.pth")
    recorder.epoch_ends()
    torch.save({}, tmp_path / "final.pth")
    assert [path.name for path in tmp_path.iterdir()] == ["initial.pth"]
    assert gate.dropped == 2


def test_attention_backends_are_selected_and_read_back() -> None:
    everything = select_sdpa("default")
    try:
        assert select_sdpa("efficient+math") == "efficient+math"
        assert select_sdpa("flash") == "flash"
        assert select_sdpa("default") == "flash"
    finally:
        assert select_sdpa(everything) == everything


def test_workers_live_on_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = torch.utils.data.DataLoader
    monkeypatch.setattr(loader, "__init__", loader.__init__)
    keep_workers()
    data = torch.rand(4, 1)
    assert loader(data, num_workers=1).persistent_workers  # type: ignore[arg-type]
    assert not loader(data).persistent_workers  # type: ignore[arg-type]


def realised(path: Path, made: Plan) -> Realised:
    return Realised(made, Rank(0, 1), path)


def loader(**changes: Any) -> Any:
    return SimpleNamespace(
        **{"num_workers": 0, "batch_size": 2, "persistent_workers": False} | changes
    )


def test_the_report_is_a_rank_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    path, model = tmp_path / "rank0.json", torch.nn.Linear(2, 2)
    facts = realised(path, plan())
    facts.loader(loader())
    facts.model(model, [])
    model(torch.rand(1, 2))
    facts.step()
    report = RankReport.model_validate_json(path.read_text())
    assert report.dtype == "float32"
    assert report.env == {"OMP_NUM_THREADS": "3"}
    assert report.versions.trainer_commit == "abc"
    assert report.versions.trainer_dirty is True
    assert report.effects["activation_checkpointing"] == "off"
    assert report.effects["batch_size"] == "2"
    assert report.profiled_epochs == [2]
    assert validate(facts.report(), RankReport, path) == report


def test_a_model_that_no_hook_saw_has_an_unknown_type(tmp_path: Path) -> None:
    facts = realised(tmp_path / "rank0.json", plan())
    facts.loader(loader())
    facts.step()
    report = RankReport.model_validate_json((tmp_path / "rank0.json").read_text())
    assert report.dtype == "unknown"
    assert "activation_checkpointing" not in report.effects


def test_the_report_is_written_once_and_by_rank_0_alone(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    Realised(plan(ranks=2), Rank(1, 2), path).step()
    assert not path.exists()
    facts = realised(path, plan())
    facts.step()
    path.unlink()
    facts.step()
    assert not path.exists()


def test_mixed_precision_shows_in_the_layers_not_in_the_parameters(tmp_path: Path) -> None:
    facts, model = realised(tmp_path / "r.json", plan(dtype="bfloat16")), torch.nn.Linear(2, 2)
    facts.model(model, [])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(torch.rand(1, 2))
    assert facts.report()["dtype"] == "bfloat16"
    assert facts.effects["parameter_dtype"] == "float32"


def test_a_precision_that_did_not_take_effect_ends_the_run(tmp_path: Path) -> None:
    facts, model = realised(tmp_path / "r.json", plan(dtype="bfloat16")), torch.nn.Linear(2, 2)
    facts.model(model, [])
    with pytest.raises(HostError, match="float32, the recipe asks for bfloat16"):
        model(torch.rand(1, 2))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"num_workers": 2}, "data-loader workers: the trainer has 2, the recipe asks for 0"),
        ({"batch_size": 8}, "samples a batch: the trainer has 8, the recipe asks for 2"),
        ({"persistent_workers": True}, "persistent workers: the trainer has True"),
    ],
)
def test_a_loader_other_than_asked_for_ends_the_run(
    tmp_path: Path, found: dict[str, int], message: str
) -> None:
    with pytest.raises(HostError, match=message):
        realised(tmp_path / "r.json", plan()).loader(loader(**found))


def test_batches_by_cost_have_no_size(tmp_path: Path) -> None:
    facts = realised(tmp_path / "r.json", plan())
    facts.loader(loader(batch_size=None))
    assert facts.effects["batch_size"] == "by cost"


def test_an_epoch_shorter_than_the_window_ends_the_run(tmp_path: Path) -> None:
    profiler = Profiler(Window(5, 1, 2, False, False), tmp_path / "t.json.gz")
    profiler.begins(True)
    for _ in range(4):
        profiler.step()
    with pytest.raises(HostError, match=r"ended 4 step\(s\) before"):
        profiler.ends()


def test_a_trace_that_is_not_there_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="left 0 traces of this rank"):
        collect(tmp_path, tmp_path / "t.json.gz", 7)
