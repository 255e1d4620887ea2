"""`best.yaml`: the settings that run the best recipe again."""

from __future__ import annotations

import yaml

from perfproof.schema.loop import LoopState


def overlay(state: LoopState) -> str:
    """A configuration overlay for `snakemake perf_report --configfile`."""
    spec = state.spec
    settings = {
        "model": spec.model,
        "trial": state.best,
        "cluster": spec.cluster,
        "nodes": spec.nodes,
        "workload": spec.workload,
    }
    head = "# The best recipe of a loop: snakemake perf_report --configfile <this file>\n"
    return head + yaml.safe_dump(settings, sort_keys=False)
