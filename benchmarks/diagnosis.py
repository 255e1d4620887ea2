"""Is the bottleneck found? Labelled traces, one known bottleneck each, through the whole analysis.

`python -m benchmarks.diagnosis [FOLDER] [--json]`: FOLDER holds `labels.json` (name to class) and a
trace a name, or `NAME.rank0…`, `NAME.rank1…`. By default the traces of `diagnosis_record` that ship
with the tests. The answer is the class of the verified claim with the largest share of step time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from perfproof.artifacts.inventory import take_inventory
from perfproof.claims.analyze_trace import analyze
from perfproof.claims.verify_trace import verify
from perfproof.core.files import read_json, write_record
from perfproof.schema.claims import Verdict
from perfproof.traces.tables import analyse

SHIPPED = Path(__file__).parents[1] / "tests" / "data" / "diagnosis"


def traces_of(folder: Path, name: str) -> list[Path]:
    """The trace of a case, or those of its ranks."""
    alone = sorted(folder.glob(f"{name}.*json*"))
    return [path for path in alone if path.name != "labels.json"]


def ranking(traces: Sequence[Path]) -> list[tuple[str, float]]:
    """Classes of the verified claims with their share of step time, largest first."""
    with tempfile.TemporaryDirectory() as place:
        root, out = Path(place) / "run", Path(place) / "out"
        root.mkdir()
        for path in traces:
            (root / path.name).symlink_to(path.resolve())
        inventory = take_inventory(root, "artifacts/diagnosis")
        summary = analyse(inventory, root, out)
        write_record(out / "claims.json", analyze(summary, out, inventory))
        verified = verify(out / "claims.json", inventory)
    shares: dict[str, float] = {}
    for claim in verified.claims:
        if claim.verdict is Verdict.VERIFIED and claim.share_of_step is not None:
            kind = str(claim.bottleneck_class.value)
            shares[kind] = max(shares.get(kind, 0.0), claim.share_of_step)
    return sorted(shares.items(), key=lambda item: -item[1])


def diagnose(folder: Path) -> dict[str, dict[str, Any]]:
    """Label and ranking of every case."""
    labels = read_json(folder / "labels.json")
    return {
        name: {"label": label, "found": ranking(traces_of(folder, name))}
        for name, label in sorted(labels.items())
    }


def scored(cases: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Top-1 and top-2 accuracy, and the confusion table (label to first answer to count)."""
    rows = list(cases)
    table: dict[str, dict[str, int]] = {}
    first = second = 0
    for case in rows:
        answers = [kind for kind, _ in case["found"]] or ["none"]
        row = table.setdefault(case["label"], {})
        row[answers[0]] = row.get(answers[0], 0) + 1
        first += answers[0] == case["label"]
        second += case["label"] in answers[:2]
    count = max(1, len(rows))
    return {"top1": first / count, "top2": second / count, "cases": len(rows), "confusion": table}


def main() -> None:
    """Command line."""
    cli = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    cli.add_argument("folder", type=Path, nargs="?", default=SHIPPED, help="traces, labels.json")
    cli.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = cli.parse_args()
    found = diagnose(arguments.folder)
    for name, case in found.items():
        first = case["found"][0][0] if case["found"] else "none"
        mark = "ok" if first == case["label"] else "WRONG"
        ranked = ", ".join(f"{kind} {share:.1%}" for kind, share in case["found"][:3])
        print(f"{mark:5} {name:26} {case['label']:16} {ranked or 'no claim'}")
    score = scored(found.values())
    print(f"top-1 {score['top1']:.0%}, top-2 {score['top2']:.0%} of {score['cases']} cases")
    if arguments.json:
        json.dump(score | {"by_case": found}, sys.stdout)
        print()


if __name__ == "__main__":
    main()
