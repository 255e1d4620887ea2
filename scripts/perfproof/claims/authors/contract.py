"""What every author is held to: its directory, its time, its status line, its one output.

| in the directory | |
|---|---|
| `prompt.md` | what to do; read-only |
| `inputs/` | copies of what it may read, named as in the analysis directory; read-only |
| `output/` | the answer; whatever else it writes there is thrown away |
| `scratch/` | `HOME` and `TMPDIR` |
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perfproof.claims.authors import confine
from perfproof.core.command import Ended, run_bounded
from perfproof.core.errors import InputError
from perfproof.core.files import digest_bytes, digest_file

ANSWER = "claims.json"
KEY_VARIABLE = "PERFPROOF_ANALYST_KEY"
MOST_BYTES = 1_000_000
_STATUS = re.compile(r"STATUS=(ok|partial|fail); reason=(.*)")
# What a program needs to run at all and to reach a network; no other variable is passed on.
_PASSED = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
_OWN_PREFIX = "PERFPROOF_ANALYST_"


@dataclass(frozen=True)
class Answer:
    """What an author gave: its status, its words, and its output's text."""

    status: str
    reason: str
    text: str


@dataclass(frozen=True)
class Task:
    """What an author gets: prompt, inputs by name, `env` beside what is passed; its output."""

    prompt: str
    inputs: Mapping[str, bytes]
    env: Mapping[str, str] = field(default_factory=dict)
    answer: str = ANSWER

    def digests(self) -> dict[str, str]:
        """BLAKE3 of every input."""
        return {name: digest_bytes(data) for name, data in sorted(self.inputs.items())}


def ask(author: str, command: Sequence[str], task: Task, timeout_s: float) -> Answer:
    """Run an author on a task. Raises InputError, naming the author, for any breach."""
    with _directory(task) as work:
        ended = _run(author, command, work, task.env, timeout_s)
        status, reason = _status(author, ended, timeout_s)
        if status == "fail":
            raise InputError(author, f"failed: {reason}", "an answer")
        _check_inputs(author, work, task)
        return Answer(status, reason, _output(author, work, task.answer))


@contextmanager
def _directory(task: Task) -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix="author-"))
    try:
        for name in ("output", "scratch", "inputs"):
            (work / name).mkdir()
        _read_only(work / "prompt.md", task.prompt.encode())
        for name, data in task.inputs.items():
            _read_only(work / "inputs" / name, data)
        for folder in [work / "inputs", *(p for p in (work / "inputs").rglob("*") if p.is_dir())]:
            folder.chmod(0o555)
        yield work
    finally:
        for folder in (path for path in work.rglob("*") if path.is_dir() and not path.is_symlink()):
            folder.chmod(0o700)
        shutil.rmtree(work, ignore_errors=True)


def _read_only(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o444)


def _run(
    author: str, command: Sequence[str], work: Path, env: Mapping[str, str], timeout_s: float
) -> Ended:
    passed = {k: v for k, v in os.environ.items() if k in _PASSED or k.startswith(_OWN_PREFIX)}
    home = {"HOME": str(work / "scratch"), "TMPDIR": str(work / "scratch")}
    bounds = [sys.executable, "-I", confine.__file__, str(work / "output"), str(work / "scratch")]
    try:
        return run_bounded([*bounds, "--", *command], work, {**passed, **home, **env}, timeout_s)
    except OSError as fault:
        raise InputError(author, str(fault.strerror), "a program that starts") from None


def _status(author: str, ended: Ended, timeout_s: float) -> tuple[str, str]:
    if ended.code is None:
        raise InputError(author, f"no end within {timeout_s:g} s", "an answer in time")
    found = _STATUS.fullmatch(ended.last_line)
    if found is None:
        what = f"no status as the last line (exit code {ended.code})"
        raise InputError(author, what, "STATUS=ok|partial|fail; reason=…")
    status, reason = found[1], without_key(found[2])[:200]
    if (status == "fail") != (ended.code != 0):
        what = f"STATUS={status} with exit code {ended.code}"
        raise InputError(author, what, "0 for ok and partial, another for fail")
    return status, reason


def _check_inputs(author: str, work: Path, task: Task) -> None:
    found = {
        path.relative_to(work / "inputs").as_posix(): digest_file(path)
        for path in (work / "inputs").rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    if found != task.digests():
        changed = sorted(dict(found.items() ^ task.digests().items()))
        raise InputError(author, f"changed its input {changed[0]}", "inputs left as they are")


def _output(author: str, work: Path, answer: str) -> str:
    """The answer: a regular file, not too large, UTF-8, without the key."""
    where = f"{author}: output/{answer}"
    try:
        handle = os.open(work / "output" / answer, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise InputError(where, "no such file, or a link", "the answer") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(where, "no regular file", "the answer")
    with os.fdopen(handle, "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(where, f"more than {MOST_BYTES} bytes", f"at most {MOST_BYTES}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(where, "not UTF-8", "JSON") from None
    if without_key(text) != text:
        raise InputError(where, "it repeats the key", "claims")
    return text


def without_key(text: str) -> str:
    """`text` with the key blotted out, wherever an author put it."""
    key = os.environ.get(KEY_VARIABLE)
    return text.replace(key, "[key]") if key else text
