"""Does communication leave the node? From the manifest's layout, else from what a rank sees."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from perfproof.claims.tables import RankTables
from perfproof.core.errors import InputError
from perfproof.core.files import read_record
from perfproof.schema.run import Inventory, Manifest, Role


@dataclass(frozen=True)
class Topology:
    """`kind` is `intra_node` or `inter_node`; `decided_by` names the record that says so."""

    kind: str
    decided_by: str

    def params(self) -> dict[str, str]:
        """As claim parameters."""
        return {"topology": self.kind, "decided_by": self.decided_by}


def find_topology(ranks: list[RankTables], manifest: Manifest | None) -> Topology | None:
    """The topology of the groups that communicate; None where no record tells."""
    layout = _ranks_per_node(ranks, manifest)
    world = max((tables.rank.world_size or 0 for tables in ranks), default=0)
    groups = [group for tables in ranks for group in _groups(tables)]
    if layout is None or not (groups or world):
        return None
    per_node, decided_by = layout
    crossing = [
        group for group in groups or [list(range(world))] if len({r // per_node for r in group}) > 1
    ]
    return Topology("inter_node" if crossing else "intra_node", decided_by)


def _ranks_per_node(ranks: list[RankTables], manifest: Manifest | None) -> tuple[int, str] | None:
    if manifest is not None:
        ranks_all, nodes = manifest.resolved.ranks, manifest.resolved.nodes
        return -(-ranks_all // nodes), f"manifest: {ranks_all} ranks on {nodes} nodes"
    world = max((tables.rank.world_size or 0 for tables in ranks), default=0)
    visible = max((tables.rank.visible_devices for tables in ranks), default=0)
    if 0 < world <= visible or visible > 1:
        return visible, f"trace: world size {world or 'unknown'}, {visible} GPUs visible to a rank"
    return None


def _groups(tables: RankTables) -> list[list[int]]:
    """Members of the process groups in the rank's collectives, where the trace lists them."""
    found = []
    for row in tables.rows("coll_analysis"):
        try:
            members = json.loads(row.get("Process Group Ranks") or "")
        except json.JSONDecodeError:
            continue
        if isinstance(members, list) and members and all(isinstance(m, int) for m in members):
            found.append(members)
    return found


def read_manifest(inventory: Inventory) -> Manifest | None:
    """The run's manifest; None where it left none or none that can be read."""
    for artifact in inventory.of(Role.MANIFEST):
        try:
            return read_record(Path(inventory.root) / artifact.path, Manifest)
        except InputError:
            return None
    return None
