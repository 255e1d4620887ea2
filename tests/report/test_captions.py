"""Captions render as Snakemake renders them and are clean reStructuredText."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined

ROOT = Path(__file__).resolve().parents[2]
CAPTIONS = sorted((ROOT / "report").glob("*.rst"))
LINKS = "\n\n.. _Workflow: #workflow\n.. _Statistics: #statistics\n"


@pytest.mark.parametrize("config", [{}, {"model": "mace"}, {"artifacts": "runs/a"}])
@pytest.mark.parametrize("path", CAPTIONS, ids=lambda path: path.name)
def test_caption_renders_without_warnings(path: Path, config: dict[str, str]) -> None:
    template = Environment(undefined=StrictUndefined).from_string(path.read_text() + LINKS)
    text = template.render(snakemake=SimpleNamespace(config=config))
    warnings = io.StringIO()
    body = publish_parts(
        text, writer="html", settings_overrides={"warning_stream": warnings, "report_level": 1}
    )["html_body"]
    assert len(body) > 200
    complaints = [line for line in warnings.getvalue().splitlines() if "not referenced" not in line]
    assert not [line for line in complaints if "/" in line or "WARNING" in line or "ERROR" in line]


def test_the_overview_names_its_subject() -> None:
    template = Environment(undefined=StrictUndefined).from_string(
        (ROOT / "report/workflow.rst").read_text()
    )
    text = template.render(snakemake=SimpleNamespace(config={"model": "mace"}))
    assert "``mace``" in text
