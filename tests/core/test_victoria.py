"""The server itself; `tests/telemetry/test_victoria.py` asks it queries."""

from __future__ import annotations

import socket
from array import array
from pathlib import Path

import psutil
import pytest

from perfproof.core.errors import InputError
from perfproof.core.series import Series, from_line, line, merged
from perfproof.core.victoria import FLAGS, StoreError, Victoria, binary, free_port, victoria
from perfproof.training.collectors.store import find_server


@pytest.fixture
def program() -> str:
    found = binary()
    if found is None:
        pytest.skip("no victoria-metrics here (tests/cluster/packages.txt names the package)")
    return found


def a_series(**labels: str) -> Series:
    # Years ago; floats as a sampler rounds them.
    times = array("q", range(1_400_000_000_000, 1_400_000_100_000, 1000))
    values = array("d", (round(26_181_130.255 + 0.123457 * i, 6) for i in range(100)))
    return Series({"__name__": "rocm_energy_joules", **labels}, times, values)


def lines(*series: Series) -> list[bytes]:
    return [f"{line(one)}\n".encode() for one in series]


def back(server: Victoria, match: str = "") -> list[str]:
    found = server.export(match) if match else server.export()
    return [line(one) for one in merged(map(from_line, found))]


def test_what_goes_in_comes_out(program: str) -> None:
    # A quote, a backslash and letters of other alphabets in a label.
    sent = merged([a_series(card="0"), a_series(card='1"ü漢\\')])
    with victoria(program) as server:
        server.load(lines(*sent))
        assert back(server) == [line(one) for one in sent]
        assert len(back(server, '{card="0"}')) == 1


def test_a_store_with_a_place_of_its_own_is_found_again(program: str, tmp_path: Path) -> None:
    with victoria(program, tmp_path / "store") as server:
        server.load(lines(a_series(card="0")))
        (process,) = [
            child
            for child in psutil.Process().children()
            if f"-storageDataPath={tmp_path / 'store' / 'data'}" in child.cmdline()
        ]
        words = process.cmdline()
    assert set(FLAGS) <= set(words)
    assert "-fs.disableMmap" in words
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    with victoria(program, tmp_path / "store", other_hosts=True) as again:
        assert len(back(again)) == 1


def test_two_run_beside_each_other(program: str) -> None:
    with victoria(program) as one, victoria(program) as two:
        one.load(lines(a_series(card="0")))
        assert back(two) == []


def test_a_proxy_of_the_environment_is_not_asked(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with victoria(program) as server:
        assert back(server) == []


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    liar = tmp_path / "victoria-metrics"
    liar.write_text("#!/bin/sh\necho cannot do it\nexit 1\n")
    liar.chmod(0o755)
    with pytest.raises(StoreError, match="does not start: cannot do it"):
        victoria(str(liar)).__enter__()


def test_a_named_program_must_be_there() -> None:
    with pytest.raises(InputError, match="victoria_metrics: no such program"):
        find_server("/no/such/program")


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        assert free_port([taken.getsockname()[1]]) != taken.getsockname()[1]
