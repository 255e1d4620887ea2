"""`best.yaml`: settings that the workflow takes."""

from __future__ import annotations

from pathlib import Path

import yaml

from perfproof.core.config import load_settings
from perfproof.levers.story.recipe import overlay
from perfproof.levers.story.record import Loop


def test_the_workflow_takes_it(rich: Loop, root: Path) -> None:
    settings = load_settings(yaml.safe_load(overlay(rich.explored)), root)
    assert (settings.model, settings.trial, settings.nodes) == ("orbit2", "bf16", 1)
    assert (settings.cluster, settings.workload) == ("local", "embedded")
