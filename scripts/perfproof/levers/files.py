"""Where a loop's files lie. Light on purpose: Snakemake reads it at every start."""

from __future__ import annotations

from pathlib import Path

from perfproof.core.layout import trial_run
from perfproof.schema.loop import LoopSpec, Measurement

EXPLORING = "steps"


def run_dir(results: Path, spec: LoopSpec, asked: Measurement) -> Path:
    """Where a measurement of a loop lies."""
    return results / trial_run(spec.model, asked.trial, spec.nodes, asked.rep)


def last_step(chain: Path) -> Path:
    """The newest step of a chain's directory."""
    return max(chain.glob("*.json"), key=lambda p: int(p.stem))


def chains(loop: Path) -> list[Path]:
    """A loop's chains that have steps: exploring, and the confirmations of its endings."""
    return [p for p in (loop / EXPLORING, *sorted(loop.glob("*/confirm"))) if any(p.glob("*.json"))]
