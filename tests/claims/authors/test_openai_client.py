"""A model behind an endpoint: what is sent, what is taken, and what a bad server cannot do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from perfproof.claims.authors.author import author_of, claims_by
from perfproof.claims.authors.contract import KEY_VARIABLE
from perfproof.claims.authors.openai_client import MOST_FILE_CHARACTERS, messages, split
from perfproof.schema.authors import AuthorRecord
from perfproof.schema.claims import ClaimSet
from perfproof.schema.config import Settings
from tests.claims.authors.analysis import RUN, Analysis, idle_claim, make_analysis
from tests.claims.authors.server import dripping, flooding, saying, send, serving

KEY = "sk-very-secret"
CLAIMS = json.dumps({"run_id": RUN, "source": "trace", "claims": [idle_claim()]})
Respond = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return make_analysis(tmp_path_factory.mktemp("analysis"))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def asked(
    analysis: Analysis, respond: Respond, timeout_s: float = 20.0
) -> tuple[ClaimSet, AuthorRecord, list[tuple[str, dict[str, str], Any]]]:
    with serving(respond) as server:
        settings = Settings(
            analyst="openai", analyst_url=server.url, analyst_model="m-1",
            analyst_timeout_s=timeout_s,
        )  # fmt: skip
        author = author_of(settings)
        terms = analysis.terms(author.name)
        found, record = claims_by(author, "the prompt", analysis.inputs(), terms)
        for made in (found, record):
            assert KEY not in made.model_dump_json()
        return found, record, server.requests


def test_prompt_and_tables_go_out_and_claims_come_back(analysis: Analysis) -> None:
    content = f"```json\n{CLAIMS}\n```\nSTATUS=ok; reason=one limit"
    found, record, requests = asked(analysis, saying(content))
    assert [(c.id, c.author, c.value) for c in found.claims] == [("TR-501", "openai:m-1", 0.45)]
    assert (record.status, record.reason) == ("ok", "one limit")
    [(path, headers, body)] = requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["model"] == "m-1"
    system, user = body["messages"]
    assert system == {"role": "system", "content": "the prompt"}
    for name, data in analysis.inputs().items():
        assert f"=== {name}\n{data.decode()[:500]}" in user["content"]


def test_without_a_key_no_header_is_sent(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    _, record, requests = asked(analysis, saying(f"{CLAIMS}\nSTATUS=ok; reason=x"))
    assert record.status == "ok"
    assert "Authorization" not in requests[0][1]


def echo(handler: BaseHTTPRequestHandler) -> None:
    """Sends the key back, as a claim and as a reason."""
    key = handler.headers["Authorization"].removeprefix("Bearer ")
    claims = {"run_id": RUN, "source": "trace", "claims": [idle_claim(statement=key)]}
    saying(f"{json.dumps(claims)}\nSTATUS=ok; reason={key}")(handler)


def tell_the_key(handler: BaseHTTPRequestHandler) -> None:
    key = handler.headers["Authorization"]
    saying(f"{CLAIMS}\nSTATUS=fail; reason={key}")(handler)


BAD: dict[str, tuple[Respond, str]] = {
    "no status": (saying(CLAIMS), "no status as the last line"),
    "prose": (saying("The GPU idles.\nSTATUS=ok; reason=x"), "not JSON"),
    "gives up": (saying("STATUS=fail; reason=no idea"), "failed: no idea"),
    "tells the key": (tell_the_key, "failed: Bearer [key]"),
    "echoes the key": (echo, "it repeats the key"),
    "no choices": (lambda h: send(h, b"{}"), "no choices[0].message.content"),
    "content is no text": (saying(7), "no choices[0].message.content"),
    "not JSON": (lambda h: send(h, b"<html>"), "not JSON"),
    "deep": (lambda h: send(h, b"[" * 100_000), "not JSON"),
    "unauthorized": (
        lambda h: send(h, h.headers["Authorization"].encode(), 401),
        "HTTP 401; expected HTTP 200",
    ),
    "redirect": (lambda h: send(h, b"", 307, Location="/v1/elsewhere"), "HTTP 307"),
    "flood": (flooding, "bytes; expected a chat completion"),
    "hangs up": (lambda h: h.connection.close(), "expected an answer"),
}  # fmt: skip


@pytest.mark.parametrize(("respond", "says"), BAD.values(), ids=BAD)
def test_a_bad_answer_is_no_claim(analysis: Analysis, respond: Respond, says: str) -> None:
    found, record, requests = asked(analysis, respond)
    assert found.claims == []
    assert record.status == "fail"
    assert says in record.reason
    assert len(requests) == 1


def test_a_lie_is_a_claim_until_it_is_judged(analysis: Analysis) -> None:
    lie = json.dumps({"run_id": RUN, "source": "trace", "claims": [idle_claim(0.99)]})
    found, _, _ = asked(analysis, saying(f"{lie}\nSTATUS=ok; reason=sure"))
    assert [claim.value for claim in found.claims] == [0.99]


def test_one_that_drips_is_ended(analysis: Analysis) -> None:
    begin = time.monotonic()
    _, record, _ = asked(analysis, dripping, timeout_s=3.0)
    assert time.monotonic() - begin < 20
    assert "no end within 3 s" in record.reason


def test_nobody_there_is_said(analysis: Analysis) -> None:
    settings = Settings(analyst="openai", analyst_url="http://127.0.0.1:9/v1", analyst_model="m-1")
    author = author_of(settings)
    _, record = claims_by(author, "p", analysis.inputs(), analysis.terms(author.name))
    assert record.reason == "openai:m-1: failed: 127.0.0.1: ConnectionError; expected an answer; " \
        "expected an answer"  # fmt: skip


def test_long_files_are_cut_at_a_line_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "prompt.md").write_text("p")
    lines = [f"row {number}\n" for number in range(20_000)]
    (tmp_path / "inputs" / "a.csv").write_text("".join(lines))
    text = messages(tmp_path)[1]["content"]
    kept = [line for line in text.splitlines() if line.startswith("row")]
    assert len(text) < MOST_FILE_CHARACTERS + 100
    assert text.splitlines()[-1] == f"=== cut: {len(lines) - len(kept)} more lines"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{}\nSTATUS=ok; reason=x", ("{}", "STATUS=ok; reason=x")),
        ("```\n{}\n```\n\nSTATUS=ok; reason=x\n", ("{}", "STATUS=ok; reason=x")),
        ("", ("", "")),
        ("STATUS=ok; reason=x", ("", "STATUS=ok; reason=x")),
    ],
)
def test_answer_and_status_are_taken_apart(content: str, expected: tuple[str, str]) -> None:
    assert split(content) == expected
