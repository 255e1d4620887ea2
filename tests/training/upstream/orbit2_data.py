"""A tiny data set in ORBIT-2's layout: random fields, coarse and four times finer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

VARIABLES = (
    "land_sea_mask",
    "orography",
    "lattitude",
    "landcover",
    "total_precipitation_24hr",
    "2m_temperature_min",
    "2m_temperature_max",
)
GRIDS = {"low": (16, 32), "high": (64, 128)}


def write(root: Path, files: int, samples: int) -> None:
    """`root/low` and `root/high`, each with `files` training files of `samples` samples."""
    random = np.random.default_rng(0)
    for name, (height, width) in GRIDS.items():
        folder = root / name
        folder.mkdir(parents=True)
        np.save(folder / "lat.npy", np.linspace(-60, 60, height))
        np.save(folder / "lon.npy", np.linspace(0, 350, width))
        np.savez(folder / "normalize_mean.npz", **_each(np.array([0.5])))
        np.savez(folder / "normalize_std.npz", **_each(np.array([0.3])))
        for split, count in (("train", files), ("val", 1), ("test", 1)):
            (folder / split).mkdir()
            for index in range(count):
                shape = (samples, 1, height, width)
                fields: dict[str, Any] = {
                    v: random.random(shape, dtype=np.float32) for v in VARIABLES
                }
                np.savez(folder / split / f"2000_{index}.npz", **fields)
            mean = np.full((1, height, width), 0.5, dtype=np.float32)
            np.savez(folder / split / "climatology.npz", **_each(mean))


def _each(value: Any) -> dict[str, Any]:
    return dict.fromkeys(VARIABLES, value)
