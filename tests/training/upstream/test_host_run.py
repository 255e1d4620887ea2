"""The host runs a trainer in a process of its own, by path, as a rank does."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perfproof.core.files import read_record
from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.schema.run import RankReport
from perfproof.training.identity import Identity
from perfproof.training.upstream import command
from perfproof.training.upstream.host.hooks import script_names
from perfproof.training.upstream.host.plan import HostError
from perfproof.training.upstream.host.run import run_script
from tests.training.upstream import fakes


@dataclass(frozen=True)
class Ran:
    """One run of the host."""

    run_dir: Path
    code: int
    output: str

    @property
    def steps(self) -> list[dict[str, str]]:
        lines = [line for line in self.output.splitlines() if "[perfproof] step " in line]
        return [dict(word.split("=") for word in line.split()[2:]) for line in lines]

    @property
    def failure(self) -> str:
        return next(line for line in self.output.splitlines() if "[perfproof] failed" in line)

    def profiled_steps(self) -> int:
        with gzip.open(self.run_dir / "traces/rank0.pt.trace.json.gz") as stream:
            events = json.load(stream)["traceEvents"]
        names = {e["name"] for e in events if e.get("cat") == "user_annotation"}
        return sum(name.startswith("ProfilerStep#") for name in names)


def run(tmp_path: Path, resolved: ResolvedRecipe, cluster: Cluster) -> Ran:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    made = command(resolved, cluster, run_dir)
    who = Identity(0, 0, 1)
    env = os.environ | resolved.env | dict(made.env) | who.environment()
    env |= {name: who.fill(template) for name, template in made.rank_env.items()}
    env |= {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        made.argv, env=env, cwd=made.cwd, text=True, capture_output=True, timeout=120
    )
    return Ran(run_dir, done.returncode, done.stdout + done.stderr)


def run_orbit2(tmp_path: Path, site: Any = None, **recipe: Any) -> Ran:
    root = fakes.orbit2_clone(tmp_path / "clone")
    return run(
        tmp_path,
        fakes.resolved("orbit2", **recipe),
        fakes.cluster("orbit2", root, **site or {}),
    )


def test_orbit2_is_profiled_capped_and_keeps_no_checkpoint(tmp_path: Path) -> None:
    site = {"shims": ["bf16_names"]}
    ran = run_orbit2(tmp_path, site, training={"dtype": "bfloat16", "batches_per_epoch": 6})
    assert ran.code == 0, ran.output
    assert [step["epoch"] for step in ran.steps] == ["0"] * 6 + ["1"] * 6 + ["2"] * 6
    assert [step["profiled"] for step in ran.steps] == ["0"] * 12 + ["1"] * 6
    assert {step["samples"] for step in ran.steps} == {"2"}
    assert ran.profiled_steps() == 3
    kept = [path.name for path in (ran.run_dir / "trainer").iterdir()]
    assert kept == ["initial_0.pth"]
    report = read_record(ran.run_dir / "rank0.json", RankReport)
    assert report.dtype == "bfloat16"
    assert report.effects["shims"] == "bf16_names"
    assert report.effects["checkpoints_dropped"] == "3"
    assert report.profiled_epochs == [2]


def test_hydragnn_is_told_its_rank_and_its_losses_are_recorded(tmp_path: Path) -> None:
    root = fakes.hydragnn_clone(tmp_path / "clone")
    site = {"entry": "examples/fake/fake.py", "config_template": "examples/fake/fake.json"}
    ran = run(tmp_path, fakes.resolved("hydragnn"), fakes.cluster("hydragnn", root, **site))
    assert ran.code == 0, ran.output
    assert [step["i"] for step in ran.steps] == [str(i) for _ in range(3) for i in range(12)]
    losses = [float(step["loss"]) for step in ran.steps]
    assert sum(losses[-12:]) < sum(losses[:12])
    assert ran.profiled_steps() == 3
    assert not list((ran.run_dir / "trainer/logs").rglob("*.pt.trace.json"))
    assert not list((ran.run_dir / "trainer/logs").rglob("*_epoch.pk"))
    report = read_record(ran.run_dir / "rank0.json", RankReport)
    assert report.effects["mpi_world_size"] == "1"


def test_a_run_other_than_asked_for_fails_with_its_reason(tmp_path: Path) -> None:
    root = fakes.orbit2_clone(tmp_path / "clone")
    script = root / "examples/intermediate_downscaling.py"
    script.write_text(script.read_text().replace("+ 1 < trainer", "+ 2 < trainer"))
    ran = run(tmp_path, fakes.resolved("orbit2"), fakes.cluster("orbit2", root))
    assert ran.code == 1
    reason = "the trainer made 2 epoch(s), the recipe needs 3"
    assert ran.failure.endswith(f"reason={reason}")
    assert (ran.run_dir / "failure.txt").read_text() == f"{reason}\n"


def test_the_host_starts_on_the_standard_library_alone(root: Path) -> None:
    folder = root / "scripts/perfproof/training/upstream"
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import host.run"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "argv", sys.argv)
    return tmp_path / "script.py"


def test_a_script_runs_as_main_with_its_arguments(script: Path) -> None:
    out = script.with_suffix(".txt")
    script.write_text(
        "import sys\n"
        "if __name__ == '__main__':\n"
        "    open(sys.argv[1], 'w').write(f'{given} {sys.argv[0] == __file__}')\n"
        "    sys.exit(0)\n"
    )
    run_script([str(script), str(out)], {"given": 7})
    assert out.read_text() == "7 True"


def test_a_script_that_exits_with_an_error_is_a_failed_run(script: Path) -> None:
    script.write_text("import sys\nsys.exit('no data')\n")
    with pytest.raises(HostError, match="ended with 'no data'"):
        run_script([str(script)], {})


def test_misspelt_names_exist_only_under_their_shim(script: Path) -> None:
    script.write_text("shardedgradscaler(enabled=False)\nassert true\n")
    with pytest.raises(NameError, match="shardedgradscaler"):
        run_script([str(script)], script_names([]))
    run_script([str(script)], script_names(["bf16_names"]))
