"""The command line that all verifiers share: claims and inventory in, verdicts out."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from perfproof.core.files import read_record, write_record
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.schema.claims import Source, VerifiedSet
from perfproof.schema.run import Inventory

Verify = Callable[[Path, Inventory], VerifiedSet]


def verifier_command(description: str, source: Source, verify: Verify) -> NoReturn:
    """Read the arguments, verify, write, and end with the status."""
    arguments = parser(description)
    named = f"{source.value}.json"
    arguments.add_argument("--claims", type=Path, required=True, help=f"claims/{named}")
    arguments.add_argument("--inventory", type=Path, required=True, help="inventory.json")
    arguments.add_argument("--out", type=Path, required=True, help=f"verified/{named}")

    def step(given: argparse.Namespace) -> Status:
        found = verify(given.claims, read_record(given.inventory, Inventory))
        write_record(given.out, found)
        return verdict_status(found)

    run(step, arguments.parse_args())


def verdict_status(found: VerifiedSet) -> Status:
    """How many claims got which verdict; entries that are no claims make it partial."""
    counts = Counter(claim.verdict.value for claim in found.claims)
    done = ", ".join(f"{counts[verdict]} {verdict}" for verdict in sorted(counts)) or "no claims"
    return ok_or_partial([f"{p.where}: {p.what}" for p in found.problems], done)
