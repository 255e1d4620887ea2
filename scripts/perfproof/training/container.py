"""The words before a command that make it run inside a cluster's container image."""

from __future__ import annotations

from pathlib import Path

from perfproof.schema.config import Cluster, Container
from perfproof.training.upstream.entry import expanded

_GPU_OPTION = {"amd": ["--rocm"], "nvidia": ["--nv"], "none": []}
# The package inside the container is this one: its parent directory is bound at the same place.
_PACKAGES = Path(__file__).resolve().parents[2]


def container_words(cluster: Cluster, run_dir: Path) -> list[str]:
    """`apptainer exec … IMAGE`, or nothing where the cluster has no container.

    The run directory and this repository's package are bound where they are; paths mean the same
    on both sides.
    """
    box = cluster.container
    if box is None:
        return []
    where = f"cluster '{cluster.cluster}'"
    words = [box.command, "exec", *_GPU_OPTION[cluster.vendor]]
    if box.overlay:
        words += ["--overlay", f"{expanded(box.overlay, where, 'container.overlay')}:ro"]
    for bind in (*_own_binds(run_dir), *box.binds):
        words += ["--bind", expanded(bind, where, "container.binds")]
    for name, value in sorted(_inside(box).items()):
        words += ["--env", f"{name}={expanded(value, where, f'container.env.{name}')}"]
    return [*words, *box.options, expanded(box.image, where, "container.image")]


def inside(words: tuple[str, ...], cluster: Cluster, interpreter: str) -> list[str]:
    """A command's words with this process's interpreter replaced by the image's."""
    if cluster.container is None or words[0] != interpreter:
        return list(words)
    return [cluster.container.python, *words[1:]]


def _own_binds(run_dir: Path) -> tuple[str, ...]:
    return (str(run_dir.resolve()), f"{_PACKAGES}:{_PACKAGES}:ro")


def _inside(box: Container) -> dict[str, str]:
    return {"PYTHONPATH": str(_PACKAGES)} | box.env
