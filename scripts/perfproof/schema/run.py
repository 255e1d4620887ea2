"""Records of a run: the manifest it writes itself, and the inventory of what it left."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field

from perfproof.schema.base import Problem, Reason, Reasoned, Strict
from perfproof.schema.config import ResolvedRecipe


class State(StrEnum):
    """How far a run has come, or how it ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    NODE_FAULT = "node_fault"


class Device(Reasoned):
    """The accelerator a rank ran on, as PyTorch reports it."""

    kind: Literal["cpu", "gpu"]
    name: str
    vendor: Literal["amd", "nvidia", "none"]
    arch: str | None = Field(description="`gfx950`, `sm_90`, …")
    memory_bytes: int | None = Field(description="capacity of one device")
    count: int = Field(ge=0, description="devices visible to rank 0")


class Versions(Reasoned):
    """Software of the run. Missing packages are null with a reason."""

    python: str
    torch: str | None
    cuda: str | None
    rocm: str | None
    driver: str | None
    perfproof_commit: str | None
    perfproof_dirty: bool | None
    trainer_commit: str | None = Field(description="commit of the real trainer's clone")
    trainer_dirty: bool | None


class RankReport(Strict):
    """What rank 0 saw of itself once it trained: levers as realised, not as asked."""

    world_size: int
    device: Device
    versions: Versions
    dtype: str = Field(description="type of the parameters, as the model has them")
    num_workers: int
    env: dict[str, str] = Field(description="the recipe's variables as the rank saw them")
    effects: dict[str, str] = Field(
        default_factory=dict, description="realised settings: SDPA backends, compile, …"
    )
    profiled_epochs: list[int] = Field(
        default_factory=list, description="epochs that ran under the profiler"
    )


class Environment(Strict):
    """What a run's ranks had in their environment and who put it there."""

    given: dict[str, str] = Field(
        default_factory=dict, description="set by cluster, recipe, levers or the workload"
    )
    cleared: dict[str, str] = Field(
        default_factory=dict,
        description="found in the shell, in the name spaces of levers, and not passed on",
    )
    leaked: dict[str, str] = Field(
        default_factory=dict,
        description="passed on from the shell: name and a digest of the value, for comparing runs; "
        "no digest of what looks like a secret",
    )


class NodeCollector(Strict):
    """What collected telemetry on one node."""

    node: str
    state: Literal["collected", "died", "failed"] = Field(
        description="`died`: it ended before the run; `failed`: it never started"
    )
    samples: int = Field(ge=0, description="how many times the node was sampled")
    said: str = Field(description="what it found there, or why it failed, in its words")


class Telemetry(Reasoned):
    """How telemetry was collected."""

    collector: Literal["omnistat", "sampler", "off"]
    job_id: str | None = Field(description="the run in label `jobid` of `rmsjob_info`")
    interval_s: float | None = Field(description="seconds between samples, as asked for")
    nodes: list[NodeCollector] = Field(default_factory=list)
    store: Literal["victoria_metrics", "none"] = Field(
        "none", description="what the samples passed through; the file is the same"
    )
    file: str | None = Field(description="the samples, relative to the run directory")
    why: str = Field("", description="why `auto` took this collector and not another")
    problems: list[str] = Field(default_factory=list)

    @classmethod
    def none(cls) -> Self:
        """Nothing was collected."""
        nulls = ("job_id", "interval_s", "file")
        reasons = dict.fromkeys(nulls, Reason.NO_TELEMETRY)
        return cls(collector="off", **dict.fromkeys(nulls), reasons=reasons)


class Manifest(Reasoned):
    """`manifest.json`: written when a run starts, completed in every ending."""

    schema_version: Literal[1] = 1
    run_id: str = Field(description="model/trial/nodes/rep, or the name of the artifacts")
    state: State
    exit_code: int | None = Field(description="of the training command; null while it runs")
    ended_by: str = Field(description="how it ended in words: `exit`, `signal 15`, an exception")
    started_at: str = Field(description="UTC, ISO 8601")
    ended_at: str | None = Field(description="UTC, ISO 8601; null while it runs")
    duration_s: float | None
    node_list: list[str]
    slurm_job_id: str | None
    command: list[str] = Field(description="what was started, without this machine's paths")
    resolved: ResolvedRecipe
    recipe_digest: str = Field(description="BLAKE3 of the resolved recipe's canonical JSON")
    environment: Environment = Field(default_factory=lambda: Environment())
    telemetry: Telemetry = Field(default_factory=Telemetry.none)
    rank0: RankReport | None = Field(description="null when rank 0 never reached training")


class Role(StrEnum):
    """What a file of a run is."""

    LOG = "log"
    TRACE = "trace"
    TELEMETRY = "telemetry"
    MANIFEST = "manifest"
    CONFIG = "config"
    META = "meta"
    NODE_PROBE = "node_probe"
    ENDING = "ending"
    OTHER = "other"


class Artifact(Reasoned):
    """One file that a run left."""

    path: str = Field(description="relative to the inventory's root")
    role: Role
    rank: int | None = Field(description="null where the file is not one rank's, or unknown")
    size_bytes: int = Field(ge=0)
    blake3: str


class Inventory(Strict):
    """`inventory.json`: every file of a run that analysis may read, with its digest."""

    schema_version: Literal[1] = 1
    run_id: str
    root: str = Field(description="directory of the files, as it was given")
    artifacts: list[Artifact] = Field(description="sorted by path")
    problems: list[Problem] = Field(default_factory=list)

    def of(self, role: Role) -> list[Artifact]:
        """The artifacts with this role, rank order first, then path."""
        found = [artifact for artifact in self.artifacts if artifact.role is role]
        return sorted(found, key=lambda a: (a.rank is None, a.rank or 0, a.path))


class LaunchRecord(Strict):
    """`record.json`: the launch rule's declared output, written whatever the outcome."""

    schema_version: Literal[1] = 1
    run_id: str
    state: State
    recipe_digest: str
    manifest_blake3: str
