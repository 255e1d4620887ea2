"""The contract of every step: last line and exit code agree, whatever happens."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from perfproof.core import step
from perfproof.core.errors import InputError


def _raise(fault: Exception) -> Callable[[argparse.Namespace], step.Status]:
    def body(_: argparse.Namespace) -> step.Status:
        raise fault

    return body


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        (lambda _: step.Status("ok", "3 files"), 0, "STATUS=ok; reason=3 files"),
        (lambda _: step.Status("partial", "two\nlines"), 0, "STATUS=partial; reason=two lines"),
        (lambda _: step.Status("fail", "no"), 1, "STATUS=fail; reason=no"),
        (
            _raise(InputError("a.log", "empty", "steps")),
            1,
            "STATUS=fail; reason=a.log: empty; expected steps",
        ),
        (_raise(KeyError("k")), 1, "STATUS=fail; reason=KeyError: 'k'"),
    ],
)
def test_last_line_and_exit_code_agree(
    body: Callable[[argparse.Namespace], step.Status],
    code: int,
    line: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ending:
        step.run(body, argparse.Namespace())
    assert ending.value.code == code
    assert capsys.readouterr().out.splitlines()[-1] == line


def test_bad_arguments_are_a_failed_step(capsys: pytest.CaptureFixture[str]) -> None:
    parser = step.parser("x")
    parser.add_argument("--needed", required=True)
    with pytest.raises(SystemExit) as ending:
        parser.parse_args([])
    assert ending.value.code == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("STATUS=fail; reason=")


def test_many_problems_are_counted() -> None:
    assert step.ok_or_partial(["a", "b", "c"], "done") == step.Status("partial", "a (and 2 more)")
    assert step.ok_or_partial([], "done") == step.Status("ok", "done")
