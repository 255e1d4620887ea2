"""Rank hooks: run in each rank, and what they say is in rank 0's report."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from perfproof.core.config import load_levers
from perfproof.core.errors import InputError
from perfproof.core.files import digest_record
from perfproof.training.resolve import resolve
from perfproof.training.upstream.host.rank_hooks import HookError, run_hooks
from tests.workflow.tree import copy_repository

SAYS = "def apply():\n    return {'answer': 42}\n"


def test_hooks_run_in_order_and_say_what_holds() -> None:
    later = "def apply():\n    return {'answer': 'later', 'more': True}\n"
    assert run_hooks({"b.py": later, "a.py": SAYS}) == {"answer": "later", "more": "True"}
    assert run_hooks({}) == {}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\n", "defines no function apply"),
        ("def apply():\n    pass\n", "returned None"),
        ("def apply():\n    return {}\n", "returned {}"),
        ("def apply():\n    return 'done'\n", "returned 'done'"),
    ],
)
def test_what_is_no_hook_is_refused(source: str, said: str) -> None:
    with pytest.raises(HookError, match=f"a.py.*{said}"):
        run_hooks({"a.py": source})


def test_what_a_hook_raises_names_its_file() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_hooks({"bad.py": "def apply():\n    1 / 0\n"})
    assert caught.traceback[-1].path == Path("config/hooks/bad.py") or "bad.py" in str(
        caught.traceback[-1].path
    )


def test_the_shipped_hook_does_what_it_says(root: Path) -> None:
    source = (root / "config" / "hooks" / "gc_off.py").read_text()
    try:
        assert run_hooks({"gc_off.py": source}) == {"garbage_collector": "off"}
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.mark.parametrize("model", ["orbit2", "hydragnn"])
def test_a_hooks_source_is_part_of_the_recipe(root: Path, tmp_path: Path, model: str) -> None:
    hooked = [lever.id for lever in load_levers(root, model).levers if lever.hook]
    assert hooked
    tree = copy_repository(root, tmp_path / "clone")

    def digest() -> str:
        resolved = resolve(tree, model=model, trial=hooked[0], cluster="local", nodes=1)
        assert list(resolved.hooks) == ["gc_off.py"]
        return digest_record(resolved)

    before = digest()
    path = tree / "config" / "hooks" / "gc_off.py"
    path.write_text(path.read_text() + "# changed\n")
    assert digest() != before
    path.rename(path.with_name("gc_on.py"))
    with pytest.raises(InputError, match="gc_on"):
        digest()
