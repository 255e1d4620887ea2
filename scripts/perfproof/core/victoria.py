"""A VictoriaMetrics server of one's own: started on a free port, fed, asked, stopped.

The binary is Debian's `victoria-metrics`, the project's `victoria-metrics-prod`, or the one that
the variable PERFPROOF_VICTORIA_METRICS names.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfproof.core.command import end
from perfproof.core.errors import InputError
from perfproof.core.parent import die_with_parent

VARIABLE = "PERFPROOF_VICTORIA_METRICS"
_NAMES = ("victoria-metrics", "victoria-metrics-prod", "victoria-metrics-linux-amd64-prod")
# Memory maps are refused on login nodes; answers must not come from a cache or lag behind.
FLAGS = (
    "-fs.disableMmap",
    "-retentionPeriod=100y",
    "-search.disableCache",
    "-search.latencyOffset=0s",
    "-search.maxPointsPerTimeseries=90000",
    "-memory.allowedBytes=256MB",
    "-dedup.minScrapeInterval=1ms",
)
_START_S, _STOP_S, _ANSWER_S, _TRIES = 15.0, 10.0, 120.0, 3
_BATCH = 8 << 20
_ALL, _FAR_UNIX_S = '{__name__!=""}', 4_102_444_800
INSTALL = "victoria-metrics (a Debian package), or a release of single-node VictoriaMetrics"
# A proxy of the environment must not be asked for what runs on this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class StoreError(RuntimeError):
    """The server does not start, or refuses what it was asked."""


@dataclass(frozen=True)
class Sample:
    """One element of an instant query's answer."""

    labels: dict[str, str]
    value: float


@dataclass(frozen=True)
class Victoria:
    """A running server."""

    url: str

    def load(self, lines: Iterable[bytes]) -> None:
        """Import JSON lines and make them searchable."""
        batch = bytearray()
        for line in lines:
            batch += line
            if len(batch) > _BATCH:
                self._call("/api/v1/import", bytes(batch))
                batch.clear()
        if batch:
            self._call("/api/v1/import", bytes(batch))
        self.flush()

    def flush(self) -> None:
        """Make searchable what came in.

        A query before that would be answered empty, and the empty answer remembered.
        """
        self._call("/internal/force_flush")

    def export(self, match: str = _ALL) -> Iterator[bytes]:
        """All samples of the series that `match` selects, as JSON lines."""
        # Without an end, samples of a node whose clock is ahead would be left out.
        asked = {"match[]": match, "start": "0", "end": str(_FAR_UNIX_S)}
        query = urllib.parse.urlencode(asked)
        try:
            with _OPENER.open(f"{self.url}/api/v1/export?{query}", timeout=_ANSWER_S) as answer:
                yield from filter(bytes.strip, answer)
        except OSError as fault:
            raise StoreError(f"/api/v1/export: {fault}") from None

    def instant(self, query: str, time_ms: int) -> list[Sample]:
        """The answer at a time, which is never left to the server's clock."""
        arguments = {"query": query, "time": f"{time_ms // 1000}.{time_ms % 1000:03d}"}
        answer = self._call("/api/v1/query", urllib.parse.urlencode(arguments).encode())
        result = json.loads(answer)["data"]["result"]
        return [Sample(_labels(one["metric"]), float(one["value"][1])) for one in result]

    def _call(self, path: str, body: bytes | None = None) -> bytes:
        try:
            with _OPENER.open(self.url + path, body, _ANSWER_S) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as fault:
            said = fault.read(400).decode("utf-8", "replace")
            raise StoreError(f"{path}: {fault.code}: {' '.join(said.split())}") from None
        except OSError as fault:
            raise StoreError(f"{path}: {fault}") from None


def _labels(metric: dict[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in metric.items()}


def binary() -> str | None:
    """The server's program; None where there is none. Raises InputError for a wrong variable."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise InputError(named, "no program", "the VictoriaMetrics server", VARIABLE)
        return named
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@contextmanager
def victoria(
    program: str, folder: Path | None = None, *, other_hosts: bool = False
) -> Iterator[Victoria]:
    """A server, stopped at the end; also when this process is killed.

    Its store is in `folder`, or empty and in a temporary one. `other_hosts` may reach it too.
    Raises StoreError where it does not start.
    """
    made = tempfile.TemporaryDirectory(prefix="perfproof-store-")
    with made if folder is None else nullcontext(str(folder)) as place:
        Path(place).mkdir(parents=True, exist_ok=True)
        process, url = _started(program, Path(place), "" if other_hosts else "127.0.0.1")
        try:
            yield Victoria(url)
        finally:
            end(process, signal.SIGINT, _STOP_S)


def _started(program: str, folder: Path, host: str) -> tuple[subprocess.Popen[bytes], str]:
    """Another process may take the free port first: then again with another one."""
    fault, parent = "", os.getpid()
    for _ in range(_TRIES):
        port = free_port()
        log = folder / "log.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [program, f"-storageDataPath={folder / 'data'}", f"-httpListenAddr={host}:{port}",
                 *FLAGS],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                preexec_fn=lambda: die_with_parent(signal.SIGINT, parent),
            )  # fmt: skip
        url = f"http://127.0.0.1:{port}"
        if _ready(process, url):
            return process, url
        end(process, signal.SIGINT, _STOP_S)
        fault = " ".join(log.read_text("utf-8", "replace").split()[-40:])
    raise StoreError(f"{program} does not start: {fault}")


def free_port(preferred: Iterable[int] = ()) -> int:
    """A port that nobody listens on: the first free of the `preferred`, else any."""
    for port in (*preferred, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise StoreError("no port is free")


def _ready(process: subprocess.Popen[bytes], url: str) -> bool:
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with _OPENER.open(f"{url}/health", timeout=1):
                return True
        except OSError:
            time.sleep(0.02)
    return False
