"""What of the shell's environment reaches the ranks, and the record of it.

`python -m perfproof.training.environment RUN_A RUN_B` compares the records of two runs.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.files import digest_bytes, read_record
from perfproof.core.step import Status, parser, run
from perfproof.schema.run import Environment, Manifest

# A variable of these name spaces changes what is measured: it comes from the recipe, a lever or
# the cluster's file, or not at all.
LEVER_PREFIXES = tuple(
    f"{name}_"
    for name in ("NCCL", "RCCL", "HSA", "HIP", "ROCR", "MIOPEN", "PYTORCH", "TORCH", "OMP")
)
# Which devices a job may use is the scheduler's word, where software lies that of its modules.
_KEPT = frozenset({"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HIP_PATH", "TORCH_HOME"})
# Snakemake exports these with a rule's `threads`: the number of cores it reserved, not what the
# recipe asks of a rank. MKL's would win over the recipe's OMP_NUM_THREADS.
_THREAD_COUNTS = frozenset(
    f"{library}_NUM_THREADS" for library in ("MKL", "GOTO", "OPENBLAS", "NUMEXPR")
)
_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|(^|_)(API|ACCESS|PRIVATE)?_?KEY(_|$)|(^|_)(PASS|PWD|AUTH)(_|$)",
    re.IGNORECASE,
)
# Different in every process or job: comparing them says nothing about two runs.
_VOLATILE = re.compile(r"^(_|SHLVL|PWD|OLDPWD|SLURM\w*|TMPDIR|PYTHONPATH)$")


def is_lever(name: str) -> bool:
    """Whether a variable belongs to a name space of levers."""
    return name in _THREAD_COUNTS or (name.startswith(LEVER_PREFIXES) and name not in _KEPT)


def inherited(shell: Mapping[str, str]) -> dict[str, str]:
    """What of the shell's environment the ranks may see."""
    return {name: value for name, value in shell.items() if not is_lever(name)}


def record(shell: Mapping[str, str], given: Mapping[str, str]) -> Environment:
    """The record of an environment made of the shell's and of what is `given` to the ranks."""
    cleared = {n: v for n, v in shell.items() if is_lever(n) and n not in given}
    passed = (n for n in inherited(shell) if n not in given and not _VOLATILE.match(n))
    return Environment(
        given=dict(sorted(given.items())),
        cleared=dict(sorted(cleared.items())),
        leaked={name: _digest(name, shell[name]) for name in sorted(passed)},
    )


def _digest(name: str, value: str) -> str:
    return "" if _SECRET.search(name) else digest_bytes(value.encode(errors="replace"))[:12]


def difference(first: Environment, second: Environment) -> dict[str, list[str]]:
    """Names of variables that two runs did not have in common, by who set them."""
    found = {}
    for part in Environment.model_fields:
        a, b = getattr(first, part), getattr(second, part)
        found[part] = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
    return found


def lines(first: Environment, second: Environment) -> list[str]:
    """The differences for a reader. What leaked in has digests only, which say nothing by sight."""
    found = []
    for part, names in difference(first, second).items():
        a, b = getattr(first, part), getattr(second, part)
        for name in names:
            shown = [_shown(values, name, digests=part == "leaked") for values in (a, b)]
            found.append(f"{part}  {name}: {shown[0]} | {shown[1]}")
    return found


def _shown(values: Mapping[str, str], name: str, *, digests: bool) -> str:
    if name not in values:
        return "absent"
    return f"value {values[name] or 'not recorded'}" if digests else f"'{values[name]}'"


def _of(run_dir: Path) -> Environment:
    path = run_dir / "manifest.json" if run_dir.is_dir() else run_dir
    if not path.is_file():
        raise InputError(run_dir, "no manifest", "a run's directory, or its manifest.json")
    return read_record(path, Manifest).environment


def _step(arguments: argparse.Namespace) -> Status:
    found = lines(_of(arguments.first), _of(arguments.second))
    for line in found:
        print(line)
    return Status("ok", f"{len(found)} variables differ")


def main() -> None:
    """Command line."""
    cli = parser("Compare what the ranks of two runs had in their environment.")
    cli.add_argument("first", type=Path, help="directory of a run, or its manifest")
    cli.add_argument("second", type=Path, help="the other run")
    run(_step, cli.parse_args())


if __name__ == "__main__":
    main()
