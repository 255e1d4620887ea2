"""Generated files agree with the models."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from perfproof.schema.config import Settings
from perfproof.schema.export import SCHEMAS, between_markers, default_config, generated, schema_text


def test_generated_files_are_current(root: Path) -> None:
    stale = [path for path, text in generated(root).items() if path.read_text() != text]
    assert not stale, "run python -m perfproof.schema.export"


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid(name: str) -> None:
    import json

    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text(SCHEMAS[name])))


def test_default_config_is_the_models_defaults() -> None:
    assert Settings.model_validate(yaml.safe_load(default_config())) == Settings()


def test_text_outside_the_markers_is_kept(tmp_path: Path) -> None:
    page = tmp_path / "x.md"
    page.write_text("a\n<!-- generated: begin -->\nold\n<!-- generated: end -->\nb\n")
    text = between_markers(page, "new")
    assert text == "a\n<!-- generated: begin -->\nnew\n<!-- generated: end -->\nb\n"
