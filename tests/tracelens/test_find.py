"""Whose the name is, without importing anything; and the back end that follows from it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perfproof.core.errors import InputError
from perfproof.tracelens.find import INSTALL, PYTHON_VARIABLE, choose, find_tracelens
from tests.tracelens.stand_in import (
    SCRIPTS,
    distribution,
    interpreter,
    package,
    tracelens,
    unrelated,
)


def use(monkeypatch: pytest.MonkeyPatch, python: Path | str) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, str(python))


def test_amds_is_found_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tracelens(tmp_path, ""))
    found = find_tracelens()
    assert (found.version, dict(found.scripts)) == ("0.1.0", SCRIPTS)
    assert not (tmp_path / "site/TraceLens/imported").exists()
    choice = choose("auto")
    assert (choice.used, choice.found) == ("tracelens", found)
    assert choice.why == f"auto: the Python that {PYTHON_VARIABLE} names has TraceLens 0.1.0"


def damaged(folder: Path) -> Path:
    python = interpreter(folder)
    distribution(folder, "TraceLens", "0.1.0", SCRIPTS)
    return python


def uninstalled(folder: Path) -> Path:
    python = interpreter(folder)
    package(folder, "TraceLens")
    return python


def mute(folder: Path) -> Path:
    path = interpreter(folder)
    path.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    return path


NOT_AMDS = {
    "unrelated": (unrelated, "'tracelens' 0.7.0 in the Python"),
    "absent": (interpreter, "names has no TraceLens"),
    "damaged": (damaged, "its package TraceLens is gone"),
    "not installed": (uninstalled, "that nothing installed"),
    "mute": (mute, "cannot say what it has (broken)"),
    "no interpreter": (lambda folder: folder / "nothing", "cannot be started"),
}


@pytest.mark.parametrize(("make", "says"), NOT_AMDS.values(), ids=NOT_AMDS)
def test_what_is_not_amds_is_an_error_where_asked_for_and_a_reason_where_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make, says: str
) -> None:
    use(monkeypatch, make(tmp_path))
    choice = choose("auto")
    assert (choice.used, choice.found) == ("builtin", None)
    assert choice.why.startswith("auto: ")
    assert says in choice.why
    assert str(tmp_path) not in choice.why
    with pytest.raises(InputError) as fault:
        choose("tracelens")
    assert says in str(fault.value)
    assert INSTALL in str(fault.value)
    assert str(fault.value).startswith("config: trace_backend: ")
    assert "\n" not in str(fault.value)


def test_both_projects_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, unrelated(tmp_path))
    package(tmp_path, "TraceLens")
    distribution(tmp_path, "TraceLens", "0.1.0", SCRIPTS)
    assert find_tracelens().version == "0.1.0"


def test_builtin_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = interpreter(tmp_path)
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    use(monkeypatch, python)
    assert choose("builtin").why == "asked for"
    assert not (tmp_path / "asked").exists()


def test_the_workflows_own_python_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    found = find_tracelens()
    assert found.python == sys.executable
    assert "the workflow's Python" in found.what
