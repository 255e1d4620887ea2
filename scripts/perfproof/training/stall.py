"""Notice a run that hangs: it prints nothing, and none of its files grows."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.training.attempts import STAYS
from perfproof.training.collectors import FOLDER

# Before the first step: imports, data and compilation print nothing for long.
_START_UP = 3.0
_LONGEST_PAUSE_S = 5.0
# Whoever does not look for so long was stopped itself, and the ranks with it (a suspended job).
_STOPPED_S = 60.0


@dataclass
class Watchdog:
    """Looks at the files of `run_dir`; a run is stalled when nothing was written for `limit_s`.

    The file `started` is there once the first step is done; before, the run has longer.
    """

    run_dir: Path
    limit_s: float
    started: Path
    _seen: dict[str, int] = field(default_factory=dict)
    _grew_at: float = field(default_factory=time.monotonic)
    _looked_at: float = 0.0

    def stalled_s(self, now: float) -> float | None:
        """Seconds without a sign of life at `now` (monotonic), where they are too many."""
        pause_s = now - self._looked_at
        if pause_s < min(_LONGEST_PAUSE_S, self.limit_s / 10):
            return None
        self._looked_at = now
        if pause_s > _STOPPED_S:
            self._grew_at = now
        sizes = self._sizes()
        if sizes != self._seen:
            self._seen, self._grew_at = sizes, now
        limit_s = self.limit_s if self.started.exists() else _START_UP * self.limit_s
        silent_s = now - self._grew_at
        return silent_s if silent_s > limit_s else None

    def _sizes(self) -> dict[str, int]:
        """Bytes of all files of this attempt, but those of workflow steps and of collectors."""
        found = {}
        for folder, inner, names in os.walk(self.run_dir):
            if Path(folder) == self.run_dir:
                inner[:] = [name for name in inner if name not in STAYS and name != FOLDER]
            for name in names:
                path = Path(folder, name)
                found[str(path)] = 0
                with contextlib.suppress(OSError):
                    found[str(path)] = path.stat().st_size
        return found
