"""An author behind an OpenAI-compatible endpoint: prompt and inputs in, its answer out.

Runs in an author's directory, under the same contract as any program. The key is read from the
environment and goes into one header; no redirect takes it elsewhere, and no fault repeats it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from perfproof.claims.authors.contract import KEY_VARIABLE
from perfproof.core import step
from perfproof.core.errors import InputError

MOST_RESPONSE_BYTES = 4_000_000
MOST_FILE_CHARACTERS = 60_000
_FENCE = re.compile(r"\A```[a-z]*\n(.*)\n```\Z", re.DOTALL)
_CONNECT_S = 10.0


class _Key(requests.auth.AuthBase):
    """The key as a header. Also without one: else requests would look for one in ~/.netrc."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if key := os.environ.get(KEY_VARIABLE):
            request.headers["Authorization"] = f"Bearer {key}"
        return request


def messages(work: Path) -> list[dict[str, str]]:
    """The prompt, and all inputs in one message; long files are cut, and say so."""
    inputs = work / "inputs"
    files = sorted(path for path in inputs.rglob("*") if path.is_file())
    parts = [f"=== {path.relative_to(inputs).as_posix()}\n{_shown(path)}" for path in files]
    return [
        {"role": "system", "content": (work / "prompt.md").read_text(encoding="utf-8")},
        {"role": "user", "content": "\n".join(parts)},
    ]


def _shown(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    if len(text) <= MOST_FILE_CHARACTERS:
        return text
    kept = text[: text.rfind("\n", 0, MOST_FILE_CHARACTERS) + 1]
    return f"{kept}=== cut: {text.count(chr(10), len(kept))} more lines\n"


def complete(url: str, model: str, asked: list[dict[str, str]], timeout_s: float) -> str:
    """The content of the first choice. Raises InputError for whatever is no such answer."""
    where = urlsplit(url).hostname or url
    body = {"model": model, "messages": asked, "temperature": 0, "stream": False}
    try:
        with requests.post(
            f"{url.rstrip('/')}/chat/completions", json=body, auth=_Key(), stream=True,
            timeout=(_CONNECT_S, timeout_s), allow_redirects=False,
        ) as response:  # fmt: skip
            if response.status_code != requests.codes.ok:
                raise InputError(where, f"HTTP {response.status_code}", "HTTP 200")
            data = _bounded(where, response)
        return _content(where, json.loads(data))
    except requests.RequestException as fault:
        # Its text may hold what was sent; its kind does not.
        raise InputError(where, type(fault).__name__, "an answer") from None
    except (ValueError, RecursionError) as fault:
        if isinstance(fault, InputError):
            raise
        raise InputError(where, "not JSON", "a chat completion") from None


def _bounded(where: str, response: requests.Response) -> bytes:
    data = bytearray()
    for chunk in response.iter_content(65_536):
        data += chunk
        if len(data) > MOST_RESPONSE_BYTES:
            found = f"more than {MOST_RESPONSE_BYTES} bytes"
            raise InputError(where, found, "a chat completion")
    return bytes(data)


def _content(where: str, data: Any) -> str:
    choices = data.get("choices") if isinstance(data, Mapping) else None
    try:
        content = choices[0]["message"]["content"]  # type: ignore[index]
    except (TypeError, KeyError, IndexError):
        content = None
    if not isinstance(content, str):
        raise InputError(where, "no choices[0].message.content", "a chat completion")
    return content


def split(content: str) -> tuple[str, str]:
    """The answer's JSON, without a code fence around it, and its last line."""
    body, _, last = content.strip().rpartition("\n")
    body = body.strip()
    fenced = _FENCE.match(body)
    return (fenced[1] if fenced else body), last.strip()


def main() -> None:
    """Ask, write the answer, and end with the status that the answer gave itself."""
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--url", required=True)
    cli.add_argument("--model", required=True)
    cli.add_argument("--timeout-s", type=float, required=True)
    cli.add_argument("--answer", required=True, help="name of the output file")
    given, work = cli.parse_args(), Path()
    try:
        content = complete(given.url, given.model, messages(work), given.timeout_s)
    except InputError as fault:
        print(step.Status("fail", str(fault)).line())
        sys.exit(1)
    body, last = split(content)
    (work / "output" / given.answer).write_text(body, encoding="utf-8", errors="backslashreplace")
    # Whoever is served by a model sees only what follows the contract: the status, or nothing.
    print(last.encode("utf-8", "backslashreplace").decode() if last.startswith("STATUS=") else "")
    sys.exit(1 if last.startswith("STATUS=fail") else 0)


if __name__ == "__main__":
    main()
