"""What settings say of a loop: which part defines one, which recorded one a replay is of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfproof.core.errors import InputError
from perfproof.core.files import digest_bytes, read_record
from perfproof.levers.files import EXPLORING, chains, last_step
from perfproof.schema.config import Settings
from perfproof.schema.decision import Decision
from perfproof.schema.loop import LoopState

_LOOPS = "loops"
_DEFINING = {"model", "trial", "cluster", "nodes", "workload", "levers", "decision", "repetition"}


@dataclass(frozen=True)
class Recorded:
    """A loop's directory, and that of its confirmation where one was made."""

    loop: Path
    confirm: Path | None


def recorded(settings: Settings, results: Path) -> Recorded:
    """The loop that `loop` names: a directory, or a name below `results/<model>/loops/`."""
    named = Path(settings.loop)
    folder = named if named.is_dir() else results / settings.model / _LOOPS / settings.loop
    if not (folder / EXPLORING).is_dir():
        expected = f"a recorded loop: its directory, or a name in {results / settings.model}/loops"
        raise InputError("config", f"'{settings.loop}' has no steps", expected, "loop")
    confirmations = [chain for chain in chains(folder) if chain.name != EXPLORING]
    return Recorded(folder, max(confirmations, key=_runs, default=None))


def _runs(chain: Path) -> int:
    """Runs that a chain knows of: of several confirmations the one with most is the newest."""
    return len(read_record(last_step(chain), LoopState).results)


def defining(settings: Settings) -> str:
    """The part of the settings that defines a loop, as JSON."""
    return settings.model_dump_json(include=_DEFINING)


def other_decision(settings: Settings) -> str:
    """Keys of `decision:` unlike their defaults, JSON: what the replay changes, if anything."""
    default = Decision().model_dump()
    chosen = settings.decision.model_dump()
    return json.dumps({k: v for k, v in sorted(chosen.items()) if v != default[k]})


def options(settings: Settings, results: Path) -> dict[str, str]:
    """Options of `perfproof.levers.replay`, and the name of its output's directory."""
    found = recorded(settings, results)
    told: Mapping[str, Any] = {
        "decision": other_decision(settings),
        "only": " ".join(settings.levers),
        "recorded": digest_bytes(last_step(found.loop / EXPLORING).read_bytes()),
    }
    key = digest_bytes(json.dumps(told, sort_keys=True).encode())[:8]
    return {
        "name": f"{found.loop.resolve().name.lower()}-{key}",
        "loop": str(found.loop),
        "confirm": f"--confirm {found.confirm}" if found.confirm else "",
        "decision": told["decision"],
        "only": f"--only {told['only']}" if told["only"] else "",
    }
