"""The step as a command, its settings, and what the rules ask."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfproof.claims.authors.author import author_of
from perfproof.claims.authors.plan import Authors, check
from perfproof.core.errors import InputError
from perfproof.core.files import read_record
from perfproof.schema.authors import AuthorRecord
from perfproof.schema.claims import ClaimSet
from perfproof.schema.config import Settings
from tests.claims.authors.analysis import HONEST, idle_claim, make_analysis, program


def run(base: Path, root: Path, command: str, *more: str) -> tuple[int, str]:
    settings = Authors(Settings(analyst="command", analyst_command=command)).settings_json
    done = subprocess.run(
        [sys.executable, "-m", "perfproof.claims.authors.author", "--source", "trace",
         "--settings", settings, "--inventory", base / "inventory.json",
         "--traces", base / "tables/trace_summary.json", "--foms", base / "foms.json",
         "--out", base / "claims/trace_author.json", "--record", base / "authors/trace.json",
         "--prompt", root / "agents/trace_analyst.md", *more],
        capture_output=True, text=True, check=False, cwd=base,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()[-1]


def test_the_command_line(tmp_path: Path, root: Path) -> None:
    make_analysis(tmp_path)
    program(tmp_path, HONEST, [idle_claim(), idle_claim(id="TR-002", metric="mood")])
    code, line = run(tmp_path, root, f"{sys.executable} author.py")
    assert code == 0
    assert line.startswith("STATUS=partial; reason=command:author.py: claims.1: unknown metric")
    claims = read_record(tmp_path / "claims/trace_author.json", ClaimSet)
    record = read_record(tmp_path / "authors/trace.json", AuthorRecord)
    assert [claim.id for claim in claims.claims] == record.accepted == ["TR-501"]
    assert len(record.rejected) == 1


def test_a_verifier_role_sees_the_claims_and_signs_as_one(tmp_path: Path, root: Path) -> None:
    make_analysis(tmp_path)
    (tmp_path / "claims.json").write_text("{}")
    program(tmp_path, "assert open('inputs/claims/trace.json').read() == '{}'\n" + HONEST)
    code, line = run(
        tmp_path, root, f"{sys.executable} author.py", "--claims", "claims.json",
        "--prompt", str(root / "agents/trace_verifier.md"),
    )  # fmt: skip
    assert (code, line) == (
        0, "STATUS=ok; reason=1 claims by command:author.py as trace_verifier"
    )  # fmt: skip
    claims = read_record(tmp_path / "claims/trace_author.json", ClaimSet)
    assert [claim.id for claim in claims.claims] == ["TR-701"]


def test_a_failed_author_leaves_an_empty_file_and_goes_on(tmp_path: Path, root: Path) -> None:
    make_analysis(tmp_path)
    code, line = run(tmp_path, root, "false")
    assert code == 0
    assert line.startswith("STATUS=partial; reason=command:false: no status as the last line")
    assert read_record(tmp_path / "claims/trace_author.json", ClaimSet).claims == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"analyst": "command"}, "analyst_command: nothing"),
        ({"analyst": "command", "analyst_command": "a 'b"}, "analyst_command: No closing"),
        ({"analyst": "openai", "analyst_url": "http://h/v1"}, "analyst_model: nothing"),
        ({"analyst": "openai", "analyst_model": "m"}, "analyst_url: ''"),
        (
            {"analyst": "openai", "analyst_model": "m", "analyst_url": "http://u:sk-1@h/v1"},
            "analyst_url: an address with more than host and path",
        ),
        (
            {"analyst": "openai", "analyst_model": "m", "analyst_url": "http://h/v1?key=sk-1"},
            "analyst_url: an address with more than host and path",
        ),
    ],
)
def test_bad_settings_are_one_line(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as fault:
        check(Settings(**settings))
    assert says in str(fault.value)
    assert "sk-1" not in str(fault.value)


def test_rules_are_no_other_author() -> None:
    assert Authors(Settings()).verified(SimpleNamespace(run="r")) == []
    with pytest.raises(InputError):
        author_of(Settings())


def test_files_of_another_author() -> None:
    authors = Authors(Settings(analyst="command", analyst_command="a"))
    assert authors.records(SimpleNamespace(run="r")) == [
        "results/r/authors/trace.json",
        "results/r/authors/telemetry.json",
    ]
    assert "analyst_timeout_s" in json.loads(authors.settings_json)


def test_every_role_has_its_prompt(root: Path) -> None:
    names = {path.stem for path in (root / "agents").glob("*.md")}
    roles = {"launcher", "trace_analyst", "telemetry_analyst", "trace_verifier",
             "telemetry_verifier", "synthesizer"}  # fmt: skip
    assert names == roles
    for path in (root / "agents").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert "STATUS=ok; reason=" in text
        assert "`output/" in text
        assert len(text) < 3000
