"""Whether a claim's kernel group is what its kernels are: the class of a claim follows from it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from perfproof.claims.kernel_groups import KERNEL_GROUPS, NO_COMPUTE_GROUPS, OTHER_KERNELS
from perfproof.claims.verifier.raw import GpuEvent
from perfproof.claims.verifier.regex import selected
from perfproof.claims.verifier.scene import CannotSayError, Scene

_PATTERNS = tuple((name, re.compile(text, re.I)) for name, text in KERNEL_GROUPS.items())
_MOST_NAMED = 60


def group_of(event: GpuEvent) -> str:
    """The group of a kernel: by what it is, else by the vocabulary's patterns on its name."""
    return _by_name(event.name) if event.role == "compute" else event.role


@cache
def _by_name(name: str) -> str:
    return next((group for group, text in _PATTERNS if text.search(name)), OTHER_KERNELS)


def group_faults(scene: Scene, params: dict[str, Any]) -> list[str]:
    """How the claim's group differs from that of the kernels that it selects in the window.

    Raises `CannotSayError` for a group that the vocabulary does not have.
    """
    said = _known(params["group"])
    if "kernel" in params:
        found = {group_of(e) for e in scene.gpu if e.is_kernel and e.name == params["kernel"]}
        return [] if said in found else [f"the kernel is of group {' or '.join(sorted(found))}"]
    compute = {event.name for event in scene.gpu if event.is_kernel and event.role == "compute"}
    chosen = selected(compute, params["name_regex"], params["not_regex"])
    members = {name for name in compute if _by_name(name) == said}
    return [
        *_named(chosen - members, f"the regexes select kernels that are not of group {said}"),
        *_named(members - chosen, f"the regexes miss kernels of group {said}"),
    ]


def _known(group: str) -> str:
    if group in NO_COMPUTE_GROUPS or group not in (*KERNEL_GROUPS, OTHER_KERNELS):
        raise CannotSayError(f"the vocabulary has no group of compute kernels '{group[:40]}'")
    return group


def _named(kernels: set[str], what: str) -> list[str]:
    first = min(kernels, default="")
    return [f"{what}: {first[:_MOST_NAMED]!r} and {len(kernels) - 1} more"] if kernels else []
