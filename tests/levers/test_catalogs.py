"""The shipped catalogs: complete, and true to the rules that the loop relies on."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from perfproof.core.config import load_levers
from perfproof.core.errors import InputError
from perfproof.foms.agree import FIELDS
from perfproof.schema.config import Cluster, Upstream, Workload
from perfproof.schema.levers import CLOSING, Lever, LeverCatalog
from perfproof.training.embedded.models import MODELS
from perfproof.training.features import offered

NAMES = {
    "orbit2": """batch_16 num_workers_2 num_workers_4 num_workers_8 persistent_workers bf16 tf32
        precision_fp32_discriminator torch_compile_edm torch_compile_reduce_overhead
        sdpa_efficient_vs_math sdpa_flash sdpa_math activation_checkpointing_toggle channels_last
        conv_pad_internal_width miopen_winograd_off prefer_hipblaslt hsa_fine_grain_pcie
        tunable_op_live tunable_op_warmup_then_use fsdp_prefetch_tuning rccl_high_priority
        nccl_high_priority nccl_minchannels ib_qps_2 ib_qps_4 gpu_hw_queues_4 omp_threads_2
        gc_off malloc_keep_freed kernel_trace_diag_only null_unread_variable""",
    "hydragnn": """batch_16 batch_800 num_workers_2 num_workers_4 num_workers_12 persistent_workers
        torch_compile_e3nn torch_jit_script activation_checkpointing precision_fp32 tunable_op_live
        tunable_op_no_rotation tunable_op_warmup_then_use rccl_high_priority nccl_high_priority
        nccl_minchannels omp_threads_2 gc_off malloc_keep_freed kernel_trace_diag_only
        null_unread_variable""",
}
WORK = {"nominal_batch_per_rank", "realised_batches_per_rank", "samples_per_epoch"}
ROOT = Path(__file__).resolve().parents[2]
LEVERS = [
    pytest.param(lever, id=f"{model}-{lever.id}")
    for model in NAMES
    for lever in load_levers(ROOT, model).levers
]
every = pytest.mark.parametrize("lever", LEVERS)


def one(root: Path, model: str, name: str) -> Lever:
    return next(lever for lever in load_levers(root, model).levers if lever.id == name)


@pytest.mark.parametrize("model", NAMES)
def test_no_lever_is_lost(root: Path, model: str) -> None:
    assert [lever.id for lever in load_levers(root, model).levers] == NAMES[model].split()


@every
def test_a_lever_says_what_it_changes_addresses_and_shows(lever: Lever) -> None:
    assert lever.set or lever.env or lever.hook
    assert lever.effect_proof is not None
    assert lever.source
    assert lever.classes or lever.id == "null_unread_variable"


@every
def test_what_it_means_to_change_are_integrity_fields(lever: Lever) -> None:
    assert set(lever.may_change) <= set(FIELDS)
    assert ("dtype" in lever.may_change) == ("training.dtype" in lever.set)
    assert WORK.issubset(lever.may_change) == ("training.batch_size" in lever.set)
    assert WORK.isdisjoint(lever.may_change) or "training.batch_size" in lever.set


@every
def test_loader_levers_may_change_nothing(lever: Lever) -> None:
    """More workers that make other batches are no win."""
    if {"training.num_workers", "training.persistent_workers"} & lever.set.keys():
        assert lever.may_change == []


@every
def test_the_proof_is_of_what_is_set(lever: Lever) -> None:
    proof, changed = lever.effect_proof, lever.set
    assert proof is not None
    for key, found in (
        ("training.dtype", proof.dtype),
        ("training.num_workers", proof.num_workers),
        ("training.batch_size", proof.batch_size),
    ):
        assert changed.get(key) == found
    assert proof.env.items() <= lever.env.items()


@every
def test_verdicts_are_about_this_model_and_closing_ones_name_versions(lever: Lever) -> None:
    for verdict in lever.verdicts:
        assert verdict.fingerprint.model in MODELS
        assert verdict.verdict not in CLOSING or verdict.fingerprint.torch


@every
def test_what_a_trainer_must_read_is_required(lever: Lever) -> None:
    """Switches that only some trainers have; the rest of the recipe all of them read."""
    switches = {
        "training.compile": "compile",
        "training.sdpa_backend": "sdpa_backend",
        "training.activation_checkpointing": "activation_checkpointing",
        "training.persistent_workers": "persistent_workers",
    }
    wanted = {feature for key, feature in switches.items() if key in lever.set}
    if "training.dtype" in lever.set:
        wanted.add(lever.set["training.dtype"])
    wanted |= {"unread"} if any(re.match("ORBIT2_|HG_", name) for name in lever.env) else set()
    named = set(lever.requires.features)
    assert wanted - {"unread"} <= named
    assert "unread" not in wanted or named


@every
def test_libraries_of_a_vendor_need_it(lever: Lever) -> None:
    amd = ("MIOPEN_", "HSA_", "GPU_MAX_HW", "TORCH_BLAS_PREFER_HIP", "PYTORCH_TUNABLEOP_")
    if any(name.startswith(amd) for name in lever.env) and not lever.requires.features:
        assert lever.requires.vendor == ["amd"]
    if any(name.startswith(("NCCL_", "TORCH_NCCL_")) for name in lever.env):
        assert lever.requires.gpu
        assert max(lever.requires.ranks_min, lever.requires.nodes_min) > 1


@every
def test_tuning_checks_its_numbers(lever: Lever) -> None:
    """A kernel that is fast and wrong has won before."""
    if lever.env.get("PYTORCH_TUNABLEOP_TUNING") == "1":
        tolerances = lever.env["PYTORCH_TUNABLEOP_NUMERICAL_CHECK"]
        assert re.fullmatch(r"1e-\d+_1e-\d+", tolerances)
        assert lever.changes_numerics


@every
def test_evidence_names_no_job_and_no_machine(lever: Lever) -> None:
    text = " ".join([lever.description, lever.source, *(v.evidence for v in lever.verdicts)])
    assert not re.search(r"\b(job|loop)[ -]?\d{3,}|/work|/home", text)


@pytest.mark.parametrize("model", NAMES)
def test_the_null_lever_has_no_effect_by_construction(root: Path, model: str) -> None:
    null = one(root, model, "null_unread_variable")
    assert null.kind == "lever"
    assert null.expected is not None
    assert (null.expected.low, null.expected.high) == (0, 0)
    (name,) = null.env
    files = [*(root / "scripts").rglob("*.py"), *(root / "rules").glob("*.smk")]
    assert [path for path in files if name in path.read_text(encoding="utf-8")] == []


def test_a_conflict_with_a_lever_that_is_not_there_is_refused(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "levers"
    folder.mkdir(parents=True)
    text = "model: m\nlevers:\n  - {id: a, description: a, conflicts: [b]}\n"
    (folder / "m.yaml").write_text(text)
    with pytest.raises(InputError, match="conflicts name no lever of this catalog: b"):
        load_levers(tmp_path, "m")


def test_a_catalog_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "config" / "levers" / "m.yaml"
    path.parent.mkdir(parents=True)
    for name in ("a", "b"):
        path.write_text(f"model: m\nlevers: [{{id: {name}, description: x}}]\n")
        found: LeverCatalog = load_levers(tmp_path, "m")
        assert [lever.id for lever in found.levers] == [name]


def kernels(run: Path) -> set[str]:
    data = gzip.decompress((run / "trace_rank0.json.gz").read_bytes()).decode()
    return set(re.findall(r'"cat": "kernel", "name": "([^"]+)"', data))


def test_patterns_tell_recorded_kernels_apart(root: Path, shared_data: Path) -> None:
    runs = shared_data / "runs" / "orbit2"
    half, single = kernels(runs / "117m_bf16_b8_trace"), kernels(runs / "117m_fp32_b8_trace")
    bf16, math = one(root, "orbit2", "bf16"), one(root, "orbit2", "sdpa_math")
    assert bf16.effect_proof is not None
    assert math.effect_proof is not None
    wanted, unwanted = bf16.effect_proof.kernel, math.effect_proof.no_kernel
    assert wanted is not None
    assert unwanted is not None
    assert any(re.search(wanted, name) for name in half)
    assert not any(re.search(wanted, name) for name in single)
    assert any(re.search(unwanted, name) for name in half)
    assert any(re.search(unwanted, name) for name in single)


def test_the_page_lists_what_trainers_offer(root: Path) -> None:
    page = (root / "docs" / "levers.md").read_text(encoding="utf-8")
    cells = dict(re.findall(r"^\| ((?:embedded|upstream)[^|]*) \| (.+) \|$", page, re.M))
    shown = {name: set(re.findall(r"`(\w+)`", text)) for name, text in cells.items()}
    both = shown["embedded, both models"]
    assert MODELS["hydragnn"].features == both
    assert MODELS["orbit2"].features == both | shown["embedded `orbit2`"]
    for model in NAMES:
        site = Cluster(cluster="c", description="c", upstream={model: Upstream(root="/clone")})
        found = offered(model, Workload.UPSTREAM, site)
        assert found == shown[f"upstream `{model}`"]
