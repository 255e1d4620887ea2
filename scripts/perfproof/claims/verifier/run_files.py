"""The raw files of a run, by the inventory; a file that changed since is not evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from perfproof.claims.verifier.document import UnreadableError
from perfproof.claims.verifier.raw import RawTrace, read_trace
from perfproof.claims.verifier.scene import CannotSayError, Scene, scene_of
from perfproof.core.files import digest_file
from perfproof.schema.run import Artifact, Inventory, Role


@dataclass
class RunFiles:
    """Raw data of one run. Each file is read once, when a claim first needs it."""

    inventory: Inventory
    _traces: dict[int, RawTrace] | None = None
    _scenes: dict[int, Scene] = field(default_factory=dict)
    _unread: list[str] = field(default_factory=list)

    def path(self, artifact: Artifact) -> Path:
        """The artifact's file, if it still is what the inventory recorded."""
        path = Path(self.inventory.root) / artifact.path
        if not path.is_file():
            raise CannotSayError(f"{artifact.path}: no such file")
        if digest_file(path) != artifact.blake3:
            raise CannotSayError(f"{artifact.path}: changed since the inventory was made")
        return path

    def optional(self, role: Role) -> Path | None:
        """The first file of this role, or None."""
        for artifact in self.inventory.of(role):
            return self.path(artifact)
        return None

    def traces(self) -> dict[int, RawTrace]:
        """All readable traces by rank: the rank the trace names, else the one of its file name."""
        if self._traces is None:
            self._traces = {}
            for number, artifact in enumerate(self.inventory.of(Role.TRACE)):
                self._load(number, artifact)
        return self._traces

    def _load(self, number: int, artifact: Artifact) -> None:
        assert self._traces is not None
        try:
            trace = read_trace(self.path(artifact))
        except UnreadableError as fault:
            self._unread.append(f"{artifact.path}: {fault}")
            return
        except CannotSayError as fault:
            self._unread.append(str(fault))
            return
        if trace.rank is not None and artifact.rank not in (None, trace.rank):
            said = f"its name says rank {artifact.rank}, its content rank {trace.rank}"
            self._unread.append(f"{artifact.path}: {said}")
            return
        named = trace.rank if trace.rank is not None else artifact.rank
        self._traces.setdefault(number if named is None else named, trace)

    def scene(self, rank: int) -> Scene:
        """Window and GPU events of one rank. Raises `CannotSayError` where any may be missing."""
        found = self.partial_scene(rank)
        if found.trace.lost:
            raise CannotSayError(f"the trace of rank {rank} is incomplete: {found.trace.lost}")
        return found

    def partial_scene(self, rank: int) -> Scene:
        """The same of what could be read of a file: good for when it recorded, not for sums."""
        trace = self.traces().get(rank)
        if trace is None:
            why = "; ".join(self._unread) or "the run left none"
            raise CannotSayError(f"no readable trace of rank {rank} ({why})")
        if rank not in self._scenes:
            self._scenes[rank] = scene_of(trace)
        return self._scenes[rank]

    def scenes(self) -> dict[int, Scene]:
        """Window and GPU events of all ranks; every trace must be readable."""
        loaded = self.traces()
        if self._unread:
            raise CannotSayError("; ".join(self._unread))
        return {rank: self.scene(rank) for rank in sorted(loaded)}
