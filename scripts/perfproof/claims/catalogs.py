"""Which lever catalog the claims of a run may cite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.files import read_yaml, validate
from perfproof.schema.foms import Foms
from perfproof.schema.levers import LeverCatalog


def read_catalog(paths: Sequence[Path], run_id: str, foms: Foms | None) -> LeverCatalog | None:
    """The catalog of the run's model; None where no catalog given is.

    The run's records name the model; where they do not, the only catalog given counts if the run id
    begins with its model. Raises InputError for a catalog that cannot be read or a model with two.
    """
    by_model: dict[str, LeverCatalog] = {}
    for path in dict.fromkeys(paths):
        catalog = validate(read_yaml(path), LeverCatalog, path)
        if catalog.model in by_model:
            found = f"a second catalog of '{catalog.model}'"
            raise InputError(path, found, "one catalog for a model", "model")
        by_model[catalog.model] = catalog
    model = foms.integrity.model if foms else None
    if model is None and len(by_model) == 1:
        model = run_id.split("/")[0]
    return by_model.get(model or "")
