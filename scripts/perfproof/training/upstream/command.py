"""What each rank of an upstream run executes: the host, with the trainer's own interpreter."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from perfproof.core.files import write_text
from perfproof.schema.config import Cluster, ResolvedRecipe
from perfproof.training.upstream import host
from perfproof.training.upstream.entry import expanded
from perfproof.training.upstream.environment import arguments, environment
from perfproof.training.upstream.host.plan import Plan, Window
from perfproof.training.upstream.render import dumped, rendered
from perfproof.training.upstream.setup import Setup, setup
from perfproof.training.workload import Command

PLAN_FILE = "host.plan"  # not *.json: an inventory takes that for a trace
CONFIG_STEM = "config"
WORK_DIR = "trainer"


def command(resolved: ResolvedRecipe, cluster: Cluster, run_dir: Path) -> Command:
    """Render the trainer's configuration and the host's plan into `run_dir`; say what to run."""
    made = setup(resolved, cluster)
    document = rendered(made)
    directory = run_dir.resolve()
    config = directory / f"{CONFIG_STEM}{made.trainer.suffix}"
    write_text(config, dumped(document, made.trainer.suffix))
    write_text(directory / PLAN_FILE, plan_of(made, document, versions(made.root)).to_json())
    (directory / WORK_DIR).mkdir(exist_ok=True)
    python = shlex.split(expanded(made.site.python, made.where, f"{made.key}.python"))
    script = made.entry.script
    words = [
        expanded(word, made.where, f"{made.key}.arguments") for word in arguments(made, str(config))
    ]
    return Command(
        argv=(
            *(*python, str(Path(host.__file__).parent)),
            *("--plan", str(directory / PLAN_FILE), "--run-dir", str(directory)),
            *("--script", str(script), *words),
        ),
        shown=(
            *("python", "host", "--plan", PLAN_FILE, "--run-dir", "."),
            *("--script", os.path.relpath(script, made.root), *arguments(made, config.name)),
        ),
        env=environment(made, os.environ),
        rank_env=made.trainer.rank_env,
        cwd=directory / WORK_DIR,
    )


def finish(resolved: ResolvedRecipe, cluster: Cluster, run_dir: Path) -> None:
    """Remove links to checkpoints that were not written; all else each rank's host has gathered."""
    del resolved, cluster
    for path in sorted((run_dir / WORK_DIR).rglob("*")):
        if path.is_symlink() and not path.exists():
            path.unlink()


def plan_of(made: Setup, document: dict[str, Any], versions: dict[str, str | bool | None]) -> Plan:
    """What the host must do to the trainer and hold it to."""
    training, profile = made.recipe.training, made.recipe.profile
    passes = made.trainer.passes(document, made.recipe, made.entry.template)
    window = Window(
        profile.wait, profile.warmup, profile.active, profile.record_shapes, profile.with_stack
    )
    return Plan(
        trainer=made.trainer.name,
        ranks=made.resolved.ranks,
        dtype=training.dtype,
        batch_size=training.batch_size,
        num_workers=training.num_workers,
        persistent_workers=training.persistent_workers,
        batches_per_epoch=training.batches_per_epoch,
        epochs=passes,
        profiled_epoch=passes - 1 if profile.enabled else None,
        window=window if profile.enabled and not made.trainer.profiles_itself else None,
        save_checkpoints=training.save_checkpoints,
        sdpa_backend=training.sdpa_backend,
        compile_mode=training.compile_mode if training.compile else None,
        preload=made.site.preload,
        shims=sorted(made.site.shims),
        env=sorted(made.resolved.env),
        versions=versions,
        hooks=made.resolved.hooks,
    )


def versions(root: Path) -> dict[str, str | bool | None]:
    """Of the driver, this repository and the trainer's clone; None where they cannot be had."""
    # Imported here: it loads PyTorch, which a mistake in the configuration need not wait for.
    from perfproof.training.versions import driver_version, git_state

    ours, theirs = git_state(Path(__file__).parent), git_state(root)
    return {
        "driver": driver_version(),
        "perfproof_commit": ours[0],
        "perfproof_dirty": ours[1],
        "trainer_commit": theirs[0],
        "trainer_dirty": theirs[1],
    }
