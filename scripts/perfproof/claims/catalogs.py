"""Which lever catalog the claims of a run may cite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfproof.core import config
from perfproof.core.errors import InputError
from perfproof.schema.foms import Foms, Integrity
from perfproof.schema.levers import LeverCatalog, Requires

_PROCESSORS = ("cpu", "epyc", "xeon", "ryzen", "intel", "neoverse", "graviton")


def read_catalog(paths: Sequence[Path], run_id: str, foms: Foms | None) -> LeverCatalog | None:
    """The catalog of the run's model; None where no catalog given is.

    The run's records name the model; where they do not, the only catalog given counts if the run id
    begins with its model. Raises InputError for a catalog that cannot be read or a model with two.
    """
    by_model: dict[str, LeverCatalog] = {}
    for path in dict.fromkeys(paths):
        catalog = config.read_catalog(path)
        if catalog.model in by_model:
            found = f"a second catalog of '{catalog.model}'"
            raise InputError(path, found, "one catalog for a model", "model")
        by_model[catalog.model] = catalog
    model = foms.integrity.model if foms else None
    if model is None and len(by_model) == 1:
        model = run_id.split("/")[0]
    found_for = by_model.get(model or "")
    return fitting(found_for, foms.integrity) if found_for and foms else found_for


def fitting(catalog: LeverCatalog, run: Integrity) -> LeverCatalog:
    """The catalog without levers that the run's own facts rule out; what is unknown rules out none.

    Whether a lever may really be tried is the optimizer loop's question: it knows more of the run.
    """
    kept = [lever for lever in catalog.levers if not _ruled_out(lever.requires, run)]
    return catalog.model_copy(update={"levers": kept})


def _ruled_out(needs: Requires, run: Integrity) -> bool:
    vendor = _vendor(run.device_name)
    wanted: list[tuple[Sequence[str], str | None]] = [
        (needs.vendor, vendor),
        (needs.dtype, run.dtype),
        ([kind.value for kind in needs.workload], run.workload),
    ]
    if any(allowed and found and found not in allowed for allowed, found in wanted):
        return True
    if needs.gpu and vendor == "none":
        return True
    nodes = len(run.node_list) if run.node_list else None
    counts = [(needs.ranks_min, run.ranks), (needs.nodes_min, nodes)]
    return any(found is not None and found < least for least, found in counts)


def _vendor(device: str | None) -> str | None:
    """From the device's name; `none` for a processor, None where it cannot be told."""
    if device is None:
        return None
    name = device.lower()
    if "nvidia" in name or "tesla" in name:
        return "nvidia"
    if "instinct" in name or name.startswith("amd mi"):
        return "amd"
    return "none" if any(word in name for word in _PROCESSORS) else None
