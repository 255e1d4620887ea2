"""A stand-in for `apptainer`: runs what comes after the image, or goes wrong as FAULT says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SCRIPT = """#!/bin/bash
while [ "$1" != IMAGE ]; do shift; done
shift
[ "$1" = sh ] && exec "$@"
case "$FAULT:$RANK" in
  :*) exec "$@" ;;
  abort:1) echo "Memory access fault by GPU node-1 on address 0x7f. Reason: Unknown."; exit 134 ;;
  exception:1) exec python3 -c 'raise ValueError("a bad batch")' ;;
  watchdog:0) sleep 1; echo "Watchdog caught collective operation timeout: seq 5"; exit 134 ;;
  memory:*) exec python3 -c 'x = bytearray(4 * 10**9)' ;;
  disk:*) echo "OSError: [Errno 28] No space left on device"; exit 1 ;;
  fill:*) exec head -c 30M /dev/zero > "${@: -1}/big" ;;
esac
sleep 600
"""


def container(directory: Path) -> dict[str, Any]:
    """The cluster's `container` with which ranks go wrong; `directory/bin` must be on the path."""
    program = directory / "bin" / "apptainer"
    program.parent.mkdir(exist_ok=True)
    image = directory / "image.sif"
    image.touch()
    program.write_text(_SCRIPT.replace("IMAGE", str(image)))
    program.chmod(0o755)
    return {"image": str(image), "python": "python3"}
