"""The command line of the exclude list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfproof.cluster import exclude


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    return tmp_path / "excluded_nodes.json"


def nodes(listed: Path, *words: str) -> tuple[int, list[str]]:
    argv = [sys.executable, "-m", "perfproof.cluster.nodes", "--file", str(listed), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines()


def test_add_list_flag_clear(listed: Path) -> None:
    words = ("--reason", "home=FAIL", "--evidence", "probe.txt", "--by", "me")
    code, lines = nodes(listed, "add", "b1", "a1", *words)
    assert code == 0
    assert lines[-1].startswith("STATUS=ok; reason=excluded b1, a1, expires 2")
    code, lines = nodes(listed, "list")
    assert [line.split("\t")[0] for line in lines[:-1]] == ["a1", "b1"]
    assert lines[0].endswith("home=FAIL\tprobe.txt\tme")
    assert nodes(listed, "flag", "c1") == (
        0,
        ["--exclude=a1,b1,c1", "STATUS=ok; reason=--exclude=a1,b1,c1"],
    )
    assert nodes(listed, "clear", "a1") == (0, ["STATUS=ok; reason=cleared a1"])
    assert [node.name for node in exclude.read(listed).nodes] == ["b1"]
    assert nodes(listed, "clear", "--all")[0] == 0
    assert nodes(listed, "flag") == (0, ["", "STATUS=ok; reason=no node is excluded"])


def test_expired_entries_can_be_cleared(listed: Path) -> None:
    words = ("--reason", "x", "--evidence", "probe.txt")
    assert nodes(listed, "add", "a1", *words, "--days", "1e-6")[0] == 0
    assert nodes(listed, "add", "b1", *words, "--until-cleared")[0] == 0
    assert nodes(listed, "clear", "--expired") == (0, ["STATUS=ok; reason=cleared a1"])
    assert exclude.read(listed).nodes[0].expires == "never"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "a[1-4]", "--reason", "x", "--evidence", "y"), "'a[1-4]'; expected the name of"),
        (("add", "a1", "--reason", "x"), "the following arguments are required: --evidence"),
        (("add", "a1", "--reason", "x", "--evidence", "y", "--days", "0"), "expected more than 0"),
        (("clear", "a1"), "no node a1; expected nodes of the list"),
        (("clear",), "expected names, --expired or --all"),
        (("drain", "a1"), "invalid choice"),
    ],
)
def test_bad_words_fail_in_one_line(listed: Path, words: tuple[str, ...], said: str) -> None:
    code, lines = nodes(listed, *words)
    assert code == 1
    assert lines[-1].startswith("STATUS=fail; reason=")
    assert said in lines[-1]
    assert not listed.exists()
