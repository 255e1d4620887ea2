from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from perfproof.core.config import load_levers
from perfproof.core.errors import InputError
from perfproof.core.files import digest_record, read_record
from perfproof.schema.config import ResolvedRecipe, Workload
from perfproof.training.resolve import Asked, resolve
from tests.training.tiny_runs import edit, write_config


def tiny(root: Path, trial: str = "baseline", model: str = "hydragnn") -> ResolvedRecipe:
    return resolve(root, model=model, trial=trial, cluster="here", nodes=1)


def shipped(root: Path, model: str) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of the trials of one lever each, and why the other levers are refused."""
    digests, refused = {}, {}
    for lever in load_levers(root, model).levers:
        try:
            found = resolve(root, model=model, trial=lever.id, cluster="local", nodes=1)
        except InputError as fault:
            refused[lever.id] = str(fault)
        else:
            digests[lever.id] = digest_record(found)
    return digests, refused


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        (
            "hydragnn",
            {
                "batch_800": "the embedded workload; expected upstream, which it needs",
                "kernel_trace_diag_only": "has no switch 'omnistat_kernel_trace'",
                "torch_jit_script": "has no switch 'jit_script'",
                "tunable_op_warmup_then_use": "has no switch 'tunableop_results'",
            },
        ),
        (
            "orbit2",
            {
                "channels_last": "the embedded trainer of orbit2 has no switch 'channels_last'",
                "conv_pad_internal_width": "has no switch 'conv_pad'",
                "fsdp_prefetch_tuning": "has no switch 'fsdp_forward_prefetch'",
                "kernel_trace_diag_only": "has no switch 'omnistat_kernel_trace'",
                "precision_fp32_discriminator": "changes nothing in this recipe",
                "tunable_op_warmup_then_use": "has no switch 'tunableop_results'",
            },
        ),
    ],
)
def test_every_shipped_lever_changes_the_digest_or_is_refused_for_a_reason(
    root: Path, model: str, refused: dict[str, str]
) -> None:
    digests, found = shipped(root, model)
    plain = digest_record(baseline_of(root, model))
    assert len({plain, *digests.values()}) == 1 + len(digests)
    assert found.keys() == refused.keys()
    assert [name for name, why in refused.items() if why not in found[name]] == []


def baseline_of(root: Path, model: str) -> ResolvedRecipe:
    return resolve(root, model=model, trial="baseline", cluster="local", nodes=1)


@pytest.mark.parametrize("model", ["hydragnn", "orbit2"])
def test_shipped_levers_go_together_or_say_that_they_do_not(root: Path, model: str) -> None:
    digests, _ = shipped(root, model)
    levers = [lever for lever in load_levers(root, model).levers if lever.id in digests]
    for first, second in itertools.combinations(levers, 2):
        trial = "+".join(sorted([first.id, second.id]))
        declared = second.id in first.conflicts or first.id in second.conflicts
        ours, theirs = first.set | first.env, second.set | second.env
        clash = [key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]]
        if declared or clash:
            with pytest.raises(InputError, match=r"both set|conflict"):
                resolve(root, model=model, trial=trial, cluster="local", nodes=1)
        else:
            found = resolve(root, model=model, trial=trial, cluster="local", nodes=1)
            assert found.levers == sorted([first.id, second.id])


def test_a_clone_that_reads_more_switches_says_so(tmp_path: Path) -> None:
    root = write_config(tmp_path, {"upstream": {"orbit2": {"root": "/clone"}}})
    path = root / "config" / "levers" / "orbit2.yaml"
    path.write_text(
        "model: orbit2\nlevers:\n  - id: pad\n    description: wider convolutions\n"
        "    env: {PAD: '16'}\n    requires: {features: [conv_pad]}\n"
    )
    with pytest.raises(InputError, match="the upstream trainer of orbit2 has no switch 'conv_pad'"):
        tiny(root, "pad", "orbit2")
    offers = {"orbit2": {"root": "/clone", "features": ["conv_pad"]}}
    edit(root, "clusters/here", upstream=offers)
    assert tiny(root, "pad", "orbit2").env["PAD"] == "16"


@pytest.mark.parametrize(("cluster", "ranks"), [("mi355x", 16), ("example", 8)])
def test_ranks_are_nodes_times_gpus(root: Path, cluster: str, ranks: int) -> None:
    found = resolve(root, model="orbit2", trial="baseline", cluster=cluster, nodes=2)
    assert found.ranks == ranks


def test_levers_change_the_recipe_and_defaults_are_spelled_out(tiny_root: Path) -> None:
    found = tiny(tiny_root, "batch_2+variable")
    assert found.recipe.training.batch_size == 2
    assert found.recipe.architecture == {"hidden": 8, "layers": 1, "radial": 4, "cutoff": 2.5}
    assert found.levers == ["batch_2", "variable"]
    assert found.workload is Workload.EMBEDDED


def test_environment_lever_over_recipe_over_cluster(tmp_path: Path) -> None:
    root = write_config(tmp_path, {"env": {"A": "site", "B": "site", "SOME_SWITCH": "site"}})
    edit(root, "recipes/hydragnn", env={"B": "recipe", "SOME_SWITCH": "recipe"})
    assert tiny(root).env == {"A": "site", "B": "recipe", "SOME_SWITCH": "recipe"}
    assert tiny(root, "variable").env == {"A": "site", "B": "recipe", "SOME_SWITCH": "on"}


def test_upstream_is_taken_where_the_cluster_names_it(tmp_path: Path) -> None:
    clone = {"root": "/clone", "env": {"A": "trainer", "B": "trainer"}}
    root = write_config(tmp_path, {"env": {"A": "site"}, "upstream": {"hydragnn": clone}})

    def workload(asked: Asked, model: str) -> Workload:
        found = resolve(
            root, model=model, trial="baseline", cluster="here", nodes=1, workload=asked
        )
        return found.workload

    assert workload("auto", "hydragnn") is Workload.UPSTREAM
    assert workload("embedded", "hydragnn") is Workload.EMBEDDED
    assert workload("auto", "orbit2") is Workload.EMBEDDED
    assert tiny(root).env == {"A": "trainer", "B": "trainer"}
    with pytest.raises(InputError, match="no trainer for 'orbit2'"):
        workload("upstream", "orbit2")
    with pytest.raises(InputError, match="'aot_eager'"):
        tiny(root, "compile_eager")


@pytest.mark.parametrize(
    ("section", "values", "says"),
    [
        ("architecture", {"hiden": 8}, "expected 'hidden'"),
        ("architecture", {"hidden": "wide"}, "found 'wide'"),
        ("data", {"atoms_min": 30}, "30 > atoms_max"),
        ("training", {"sdpa_backend": "math"}, "no attention"),
        ("training", {"persistent_workers": True}, "keeps loader workers but has none"),
        ("training", {"bach_size": 8}, "expected 'batch_size'"),
        ("parallel", {"tensor_par": 2, "ranks_per_node": 2}, "replicates the model"),
        ("parallel", {"simple_ddp": 3}, "number of ranks, 1"),
    ],
)
def test_recipes_that_cannot_be_meant_are_refused(
    tmp_path: Path, section: str, values: dict[str, object], says: str
) -> None:
    root = write_config(tmp_path)
    edit(root, "recipes/hydragnn", **{section: values})
    with pytest.raises(InputError) as fault:
        tiny(root)
    assert says in str(fault.value)


@pytest.mark.parametrize(
    ("section", "values", "says"),
    [
        ("architecture", {"heads": 3, "embed_dim": 8}, "a multiple of heads"),
        ("data", {"height": 6, "scale": 4, "width": 8}, "a multiple of data.scale"),
        ("data", {"variables_out": 9}, "at most variables_in"),
        ("training", {"validate_epochs": True}, "no validation"),
    ],
)
def test_orbit2_refuses_what_it_cannot_hold(
    tmp_path: Path, section: str, values: dict[str, object], says: str
) -> None:
    root = write_config(tmp_path)
    edit(root, "recipes/orbit2", **{section: values})
    with pytest.raises(InputError, match=says):
        tiny(root, model="orbit2")


def test_a_lever_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    root = write_config(tmp_path)
    edit(root, "recipes/hydragnn", training={"batch_size": 2, "validate_epochs": False})
    with pytest.raises(InputError, match="changes nothing"):
        tiny(root, "batch_2")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"model": "hydragn"}, "expected 'hydragnn'"),
        ({"cluster": "her"}, "expected 'here'"),
        ({"nodes": 2}, "1 on cluster 'here'"),
        ({"nodes": 0}, "1 or more"),
    ],
)
def test_wrong_arguments_are_named(
    tiny_root: Path, arguments: dict[str, object], says: str
) -> None:
    given = {"model": "hydragnn", "trial": "baseline", "cluster": "here", "nodes": 1} | arguments
    with pytest.raises(InputError) as fault:
        resolve(tiny_root, **given)  # type: ignore[arg-type]
    assert says in str(fault.value)


def test_command_line_writes_the_recipe_and_reports_bad_names(
    tiny_root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "recipe.json"

    def call(trial: str) -> subprocess.CompletedProcess[str]:
        words = ["--root", str(tiny_root), "--model", "orbit2", "--cluster", "here"]
        command = [sys.executable, "-m", "perfproof.training.resolve", *words]
        return subprocess.run(
            [*command, "--trial", trial, "--out", str(out)], capture_output=True, text=True
        )

    good, bad = call("batch_2"), call("variable+batch_2")
    assert good.returncode == 0
    assert good.stdout.splitlines()[-1] == "STATUS=ok; reason=batch_2: 1 rank(s), embedded"
    assert read_record(out, ResolvedRecipe) == tiny(tiny_root, "batch_2", "orbit2")
    assert bad.returncode == 1
    assert bad.stdout.splitlines()[-1].startswith("STATUS=fail; reason=trial: 'variable+batch_2'")
    assert "'batch_2+variable'" in bad.stdout


def test_shipped_yaml_is_what_it_says(root: Path) -> None:
    for path in sorted((root / "config" / "clusters").glob("*.yaml")):
        assert yaml.safe_load(path.read_text())["cluster"] == path.stem
