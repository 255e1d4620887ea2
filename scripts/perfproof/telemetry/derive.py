"""Series that queries need and that follow from others of the same file."""

from __future__ import annotations

import numpy as np

from perfproof.telemetry.names import ALIASES, USED_BYTES
from perfproof.telemetry.store import Series, Store

_SHARE, _TOTAL = "rocm_vram_used_percentage", "rocm_vram_total_bytes"


def complete(store: Store) -> Store:
    """The store with older names under their new ones and memory in bytes."""
    for old, new in ALIASES.items():
        if old in store.series and new not in store.series:
            store.series[new] = store.series.pop(old)
    if USED_BYTES not in store.series:
        _add_used_bytes(store)
    return store


def _add_used_bytes(store: Store) -> None:
    """Share in use times the card's capacity, which does not change within a run."""
    capacity = {
        _card(one): float(one.values[-1]) for one in store.select(_TOTAL) if len(one.values)
    }
    for one in store.select(_SHARE):
        if (total := capacity.get(_card(one))) is not None:
            used = np.rint(one.values / 100 * total)
            store.add(USED_BYTES, Series(one.labels, one.times_ms, used))


def _card(one: Series) -> tuple[str, str]:
    return one.labels.get("instance", ""), one.labels.get("card", "")
