"""Configuration: settings of one invocation, recipes, levers, clusters."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from perfproof.schema.base import Strict
from perfproof.schema.decision import Decision

Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
Dtype = Literal["float64", "float32", "bfloat16"]


class Workload(StrEnum):
    """Which trainer runs: the real one, or the small relative that ships with this repository."""

    UPSTREAM = "upstream"
    EMBEDDED = "embedded"


class Settings(Strict):
    """What one invocation asks for (`config/config.yaml`, overridden by `--config key=value`)."""

    model: Id = Field("hydragnn", description="a recipe in `config/recipes/`")
    cluster: Id = Field("local", description="a cluster in `config/clusters/`")
    trial: str = Field(
        "baseline", description="lever ids joined by `+`, in sorted order, or `baseline`"
    )
    nodes: int = Field(1, ge=1, description="number of nodes of the run")
    repetition: int = Field(0, ge=0, description="number of the independent repetition")
    workload: Literal["auto", "upstream", "embedded"] = Field(
        "auto",
        description="`upstream` runs the real trainer, `embedded` its small relative; `auto` takes "
        "upstream where the cluster names its path",
    )
    preflight: bool = Field(
        True, description="ask the cluster whether it can take the run before the first submission"
    )
    loop: str = Field(
        "auto",
        description="name of the optimizer loop; `auto` makes one from all that defines it. For "
        "`loop_replay` also the directory of a recorded loop",
    )
    levers: list[Id] = Field(
        default_factory=list, description="levers that the loop may try; empty: all of the catalog"
    )
    budget: int = Field(
        60, ge=1, description="runs that the loop may make, those of its confirmation among them"
    )
    node_hours: float | None = Field(
        None, gt=0, description="node-hours that the loop may use; null: no bound but `budget`"
    )
    decision: Decision = Field(
        default_factory=lambda: Decision(), description="how sure the loop's decisions must be"
    )
    trace_a: str = Field(
        "", description="trace, or directory of traces, that `trace_compare` takes as reference"
    )
    trace_b: str = Field(
        "", description="trace, or directory of traces, that `trace_compare` holds against it"
    )
    probe: bool = Field(
        False,
        description="let `perf_report` try the remedy of the largest verified claim that names a "
        "lever: on one node, in pairs of runs, five minutes at most",
    )
    trace_backend: Literal["auto", "tracelens", "builtin"] = Field(
        "auto",
        description="whether AMD's TraceLens reports on the traces too; `auto`: where it is "
        "installed. Claims rest on our own tables in any case",
    )
    analyst: Literal["rules", "command", "openai"] = Field(
        "rules",
        description="another author of claims besides the rules: a program, or a model behind an "
        "OpenAI-compatible endpoint; `docs/claim_authors.md`",
    )
    analyst_command: str = Field("", description="command line of `analyst=command`")
    analyst_url: str = Field(
        "", description="base address for `analyst=openai`, such as `http://localhost:8000/v1`"
    )
    analyst_model: str = Field("", description="the model's name there")
    analyst_timeout_s: float = Field(
        600.0, gt=0, description="an author that has not ended by then is ended"
    )
    artifacts: str = Field(
        "", description="directory (or one file) that a run left: analyse it, launch nothing"
    )
    name: Id | Literal[""] = Field(
        "", description="name of the analysis of `artifacts` under `results/artifacts/`"
    )


class Training(Strict):
    """What both workloads and all models share."""

    dtype: Dtype = Field("float32", description="type of parameters and activations")
    batch_size: int = Field(8, ge=1, description="samples a rank a step")
    num_workers: int = Field(0, ge=0, description="data-loader processes a rank")
    persistent_workers: bool = Field(False, description="keep loader processes between epochs")
    epochs: int = Field(3, ge=1, description="timed epochs")
    batches_per_epoch: int = Field(20, ge=1, description="cap on batches an epoch")
    learning_rate: float = Field(1e-3, gt=0, description="AdamW learning rate")
    seed: int = Field(0, ge=0, description="seed of data, weights and order")
    compile: bool = Field(False, description="wrap the model in torch.compile")
    compile_mode: Literal["default", "reduce-overhead", "max-autotune"] = Field(
        "default", description="mode of torch.compile"
    )
    compile_backend: Literal["inductor", "aot_eager"] = Field(
        "inductor",
        description="backend of torch.compile; `aot_eager` captures and differentiates without "
        "generating kernels (shows in seconds whether a model compiles at all)",
    )
    sdpa_backend: Literal["default", "flash", "efficient", "cudnn", "math", "efficient+math"] = (
        Field("default", description="attention backends that PyTorch may pick from")
    )
    activation_checkpointing: bool = Field(False, description="recompute activations in backward")
    save_checkpoints: bool = Field(
        False, description="write model checkpoints (off: they would be timed)"
    )
    validate_epochs: bool = Field(True, description="run validation at the end of an epoch")


class Profile(Strict):
    """The profiler window. It lies outside the steps that are timed."""

    enabled: bool = Field(True, description="record one torch.profiler trace a rank")
    wait: int = Field(1, ge=0, description="steps before the profiler warms up")
    warmup: int = Field(1, ge=0, description="steps with the profiler on, not recorded")
    active: int = Field(3, ge=1, description="steps recorded")
    record_shapes: bool = Field(True, description="record input shapes of every operator")
    with_stack: bool = Field(False, description="record Python stacks (slow)")


class Parallel(Strict):
    """How ranks are laid out. The product of the sizes is the number of ranks; null is derived."""

    ranks_per_node: int | None = Field(
        None, ge=1, description="ranks a node; null: the cluster's GPUs a node, or 1 without GPU"
    )
    fsdp: int | None = Field(None, ge=1, description="sharded data-parallel size; null: all ranks")
    simple_ddp: int | None = Field(None, ge=1, description="replicated data-parallel size")
    tensor_par: int = Field(1, ge=1, description="tensor-parallel size")


class Recipe(Strict):
    """One training recipe: `config/recipes/<model>.yaml` after defaults and levers."""

    model: Id = Field(description="name of the model; equals the file's name")
    description: str = Field(description="what the model is, in one sentence")
    training: Training = Field(default_factory=lambda: Training())
    profile: Profile = Field(default_factory=lambda: Profile())
    parallel: Parallel = Field(default_factory=lambda: Parallel())
    architecture: dict[str, int | float | str | bool] = Field(
        default_factory=dict, description="sizes of the embedded model; see the model's page"
    )
    data: dict[str, int | float | str | bool] = Field(
        default_factory=dict, description="sizes of the generated data set"
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="environment variables of every rank"
    )
    upstream: dict[str, Any] = Field(
        default_factory=dict, description="keys merged into the real trainer's own configuration"
    )


class ResolvedRecipe(Strict):
    """A recipe after a trial's levers: a pure function of configuration and trial name."""

    trial: str = Field(description="`baseline`, or sorted lever ids joined by `+`")
    levers: list[Id] = Field(description="lever ids of the trial, sorted")
    workload: Workload
    cluster: Id
    nodes: int = Field(ge=1)
    ranks: int = Field(ge=1, description="processes of the run, all nodes")
    recipe: Recipe
    env: dict[str, str] = Field(description="environment after cluster, recipe and levers")
    hooks: dict[str, str] = Field(
        default_factory=dict, description="Python that each rank runs first: file name to source"
    )


class Upstream(Strict):
    """Where a real trainer lives on a cluster and how it is started; `docs/upstream.md`."""

    trainer: Literal["hydragnn", "orbit2"] | None = Field(
        None, description="whose interface the entry has; null: the model's name says it"
    )
    root: str = Field(description="directory of the trainer's clone")
    entry: str | None = Field(
        None, description="script to run, relative to `root`; null: the known ones, in order"
    )
    python: str = Field(
        "python", description="command that starts the interpreter with the trainer's packages"
    )
    arguments: list[str] = Field(
        default_factory=list,
        description="arguments of the script; `{config}` is the rendered configuration's path, "
        "`{precision}` the type's name as the trainer spells it",
    )
    config_template: str | None = Field(
        None, description="the trainer's own configuration file, relative to `root`"
    )
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="keys merged into the trainer's configuration at this site, e.g. data paths",
    )
    env: dict[str, str] = Field(default_factory=dict, description="environment of its ranks")
    pythonpath: list[str] = Field(
        default_factory=list, description="directories put before `sys.path`, relative to `root`"
    )
    preload: list[str] = Field(
        default_factory=list,
        description="modules imported before the script: submodules that it uses unimported",
    )
    features: list[str] = Field(
        default_factory=list,
        description="switches that this clone reads besides the published ones, by the names that "
        "levers require: `channels_last`, `conv_pad`, …",
    )
    shims: list[Literal["bf16_names", "cpu"]] = Field(
        default_factory=list,
        description="`bf16_names` supplies names that ORBIT-2's bfloat16 path misspells, `cpu` "
        "lets it run without a GPU; both are recorded in the manifest",
    )


class Container(Strict):
    """The image that every rank of a cluster runs in (Apptainer, Singularity)."""

    image: str = Field(description="image file; `$NAME` is taken from the environment")
    command: Literal["apptainer", "singularity"] = "apptainer"
    python: str = Field("python3", description="the interpreter inside the image")
    overlay: str | None = Field(None, description="overlay image, mounted read-only")
    binds: list[str] = Field(
        default_factory=list,
        description="`source[:target[:ro]]`, besides the run directory and this repository",
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="variables that are set inside, over the image's own"
    )
    options: list[str] = Field(default_factory=list, description="further words after `exec`")


class Health(Strict):
    """The probe of every node before training starts."""

    enabled: bool = Field(True, description="false: trust the nodes")
    timeout_s: float = Field(60.0, gt=0, description="a node that is silent for longer has failed")
    clock_offset_s: float = Field(5.0, gt=0, description="how far a node's clock may be off")
    exclude_days: float = Field(14.0, gt=0, description="days that a failed node is avoided")


def _off_is_a_word(value: object) -> object:
    """Plain YAML takes `off` for false."""
    return "off" if value is False else value


class Cluster(Strict):
    """`config/clusters/<cluster>.yaml`: what differs from site to site."""

    cluster: Id = Field(description="name; equals the file's name")
    description: str
    launcher: Literal["local", "srun"] = Field(
        "local", description="how ranks start: torchrun on this machine, or srun"
    )
    vendor: Literal["amd", "nvidia", "none"] = Field("none", description="GPU vendor")
    gpus_per_node: int = Field(0, ge=0)
    cpus_per_node: int | None = Field(None, ge=1, description="null: what the machine reports")
    partition: str | None = Field(None, description="SLURM partition")
    account: str | None = Field(None, description="SLURM account")
    constraint: str | None = Field(None, description="SLURM node constraint")
    runtime_min: int = Field(30, ge=1, description="wall-time limit of a run, minutes")
    stall_timeout_min: float | None = Field(
        10.0,
        gt=0,
        description="a run that writes nothing for so many minutes hangs and is ended; three times "
        "as many before its first step; null: never",
    )
    mem_mb: int | None = Field(None, ge=1, description="host memory a node; null: all of it")
    exclude: list[str] = Field(
        default_factory=list, description="nodes that no run may get, besides the exclude list"
    )
    mpi: str | None = Field(
        None, description="MPI plugin of srun (`pmix`) for trainers that use MPI; null: the site's"
    )
    analysis: Literal["local", "jobs"] = Field(
        "local", description="whether analysis steps run where Snakemake runs, or as small jobs"
    )
    container: Container | None = Field(None, description="image of all ranks; null: none")
    health: Health = Field(default_factory=lambda: Health())
    telemetry: Annotated[
        Literal["auto", "omnistat", "sampler", "off"], BeforeValidator(_off_is_a_word)
    ] = Field(
        "auto",
        description="what samples each node during a run; `auto`: Omnistat on AMD GPUs where it is "
        "installed, else the sampler; `docs/telemetry.md`",
    )
    telemetry_required: bool = Field(
        True, description="a collector that does not start ends the launch; false: the run goes on"
    )
    sample_interval_s: float = Field(1.0, ge=0.01, description="seconds between samples")
    omnistat: str = Field("", description="program of Omnistat's user mode; empty: looked for")
    hardware_counters: bool = Field(
        True, description="Omnistat samples hardware counters; needs its extension built"
    )
    victoria_metrics: str = Field(
        "", description="program of the store that samples pass through; empty: looked for"
    )
    upstream: dict[Id, Upstream] = Field(
        default_factory=dict, description="real trainers by model; none: the embedded workload"
    )
    env: dict[str, str] = Field(default_factory=dict, description="environment of every rank")
    shared_paths: list[str] = Field(
        default_factory=list, description="directories that every node must be able to write"
    )
    data_paths: list[str] = Field(
        default_factory=list, description="files or directories that every node must read"
    )
