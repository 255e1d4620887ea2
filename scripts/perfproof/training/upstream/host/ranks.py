"""Who this process is among the ranks, and where they meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .plan import HostError, Plan

_NAMES = ("RANK", "WORLD_SIZE")


@dataclass(frozen=True)
class Rank:
    """One process of the run."""

    rank: int
    world: int


def identify(env: Mapping[str, str], plan: Plan) -> Rank:
    """This process's rank, as the launcher's wrapper says it."""
    if not all(env.get(name, "").isdecimal() for name in _NAMES):
        raise HostError(f"{' and '.join(_NAMES)} are not set; expected the launcher to set them")
    rank, world = (int(env[name]) for name in _NAMES)
    if world != plan.ranks:
        raise HostError(f"the launcher started {world} rank(s), the recipe asks for {plan.ranks}")
    return Rank(rank, world)


def address_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The variables by which the trainers ask for the host of rank 0."""
    address = env.get("MASTER_ADDR") or "127.0.0.1"
    return {"HYDRAGNN_MASTER_ADDR": address, "HOSTNAME": address}


def meeting_point(env: Mapping[str, str]) -> dict[str, str]:
    """Where the launcher wants the ranks to meet.

    The trainers fix ports of their own (29500, 8889), on which two runs of one machine collide.
    """
    names = ("MASTER_ADDR", "MASTER_PORT")
    return {name: env[name] for name in names} if all(env.get(name) for name in names) else {}
