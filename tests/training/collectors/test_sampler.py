from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from perfproof.training.collectors import sampler
from perfproof.training.collectors.job import Job
from perfproof.training.collectors.loading import load_file
from perfproof.training.collectors.reading import Reading
from perfproof.training.collectors.samples import SampleFile
from perfproof.training.nodes import host_name


class Clock:
    """A clock that only moves when it is waited on, or when a tick takes its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.ticks: list[float] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return len(self.ticks) >= 5


def paced(clock: Clock, folder: Path, durations: list[float], interval_s: float) -> list[float]:
    left = iter(durations)

    def read() -> list[Reading]:
        clock.ticks.append(round(clock.now - 100.0, 6))
        clock.now += next(left, 0.0)
        return [("x", (), 1.0)]

    out = SampleFile(folder / "samples-a.jsonl", {})
    sampler.sample(read, out, interval_s, clock.wait, lambda: None)
    return clock.ticks


def test_ticks_fall_on_whole_intervals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ticks = paced(Clock(monkeypatch), tmp_path, [0.03] * 9, 0.5)
    assert ticks[:5] == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_a_tick_that_takes_too_long_moves_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ticks = paced(Clock(monkeypatch), tmp_path, [0.1, 2.6, 0.1], 1.0)
    assert ticks[:5] == [0.0, 1.0, 4.0, 5.0, 6.0]


def test_a_source_that_fails_costs_only_itself(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def read(self) -> Iterator[Reading]:
            yield "first", (), 1.0
            raise OSError("card fell off")

    found = sampler.Sources()
    found.add("broken", Broken)
    found.add("job", lambda: Job("1", 1, "local"))
    for _ in range(3):
        assert [name for name, _, _ in found.read()] == ["first", "rmsjob_info"]
    assert capsys.readouterr().err == "broken: OSError: card fell off\n"


WORDS = ["-m", "perfproof.training.collectors.sampler", "--job-id", "4711", "--interval-s", "0.1"]


def started(folder: Path, *, ready: bool = True) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, *WORDS, "--out", str(folder)], stdout=subprocess.PIPE, text=True
    )
    if ready:
        assert process.stdout
        assert process.stdout.readline().startswith(f"collecting on {host_name()}: job, host, ")
    return process


def samples(folder: Path) -> Path:
    return folder / f"samples-{host_name()}.jsonl"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_it_ends_when_told_and_keeps_its_samples(number: int, tmp_path: Path) -> None:
    process = started(tmp_path)
    time.sleep(0.35)
    process.send_signal(number)
    said, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    (job,) = [
        s
        for s in load_file(samples(tmp_path)).series
        if s.metric == {"__name__": "rmsjob_info", "instance": host_name(), "jobid": "4711",
                        "jobstep": "-1", "nodes": "1", "type": "local"}
    ][:1]  # fmt: skip
    assert len(job.times_ms) >= 1
    assert said.splitlines()[-1].startswith(f"collected on {host_name()}: ")


def test_a_killed_one_keeps_whole_ticks(tmp_path: Path) -> None:
    process = started(tmp_path)
    time.sleep(0.35)
    process.kill()
    process.communicate()
    found = load_file(samples(tmp_path))
    assert found.problems == []
    assert found.series
    text = samples(tmp_path).read_text()
    assert text.endswith("\n")
    assert all(json.loads(line) for line in text.splitlines())


STARTS = """
import os, sys, time
from pathlib import Path
from perfproof.training.processes import start
process = start([sys.executable, *sys.argv[2:]], os.environ, Path(sys.argv[1]))
print(process.pid, flush=True)
time.sleep(600)
"""


def test_it_ends_with_whoever_started_it_even_by_kill(tmp_path: Path) -> None:
    words = [sys.executable, "-c", STARTS, str(tmp_path / "log"), *WORDS, "--out", str(tmp_path)]
    starter = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert starter.stdout
    pid = int(starter.stdout.readline())
    until(lambda: "collecting on" in (tmp_path / "log").read_text())
    starter.kill()
    starter.communicate()
    until(lambda: not alive(pid))
    assert "collected on" in (tmp_path / "log").read_text()
    assert load_file(samples(tmp_path)).series


LEAVES = """
import subprocess, sys, time
from pathlib import Path
log = Path(sys.argv[1])
with log.open("w") as stream:
    print(subprocess.Popen(sys.argv[2:], stdout=stream).pid, flush=True)
while "collecting on" not in log.read_text():
    time.sleep(0.02)
"""


def test_an_orphan_ends_without_the_kernels_word(tmp_path: Path) -> None:
    """Whoever starts it otherwise: it looks at its parent at every tick."""
    log = tmp_path / "log"
    words = [sys.executable, "-c", LEAVES, str(log), sys.executable, *WORDS, "--out", str(tmp_path)]
    starter = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    until(lambda: "collected on" in log.read_text())
    until(lambda: not alive(int(starter.stdout)))


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_loads_little(tmp_path: Path) -> None:
    """It shares the node with what it measures: no numerical or schema library."""
    code = (
        "import sys, perfproof.training.collectors.sampler;"
        "print(sorted({'pydantic', 'numpy', 'pandas', 'torch', 'yaml'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
