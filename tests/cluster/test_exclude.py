"""The exclude list: merging, expiry, many writers at once, and the option for sbatch."""

from __future__ import annotations

import multiprocessing
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra

from perfproof.cluster import exclude, utc
from perfproof.core.errors import InputError
from perfproof.schema.cluster import ExcludedNode, ExcludeList

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LEGAL_NAME = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,12}[A-Za-z0-9])?", fullmatch=True).filter(
    lambda name: name.upper() != "ALL"
)


def finding(
    name: str, seen: datetime = NOON, days: float | None = 14, reason: str = "home=FAIL"
) -> ExcludedNode:
    return ExcludedNode(
        name=name,
        reason=reason,
        evidence="results/m/trials/baseline/nodes-1/rep-0/node_health_probe.txt",
        first_seen=utc.text(seen),
        last_seen=utc.text(seen),
        expires=exclude.NEVER if days is None else utc.text(seen + timedelta(days=days)),
        by="launch",
    )


def flag(*names: str, user: tuple[str, ...] = (), folder: Path) -> str:
    path = folder / "excluded.json"
    for name in names:
        exclude.add(path, finding(name))
    return exclude.exclude_flag(path, user, NOON)


def test_no_file_is_an_empty_list(tmp_path: Path) -> None:
    assert exclude.read(tmp_path / "none.json").nodes == []
    assert exclude.exclude_flag(tmp_path / "none.json", (), NOON) == ""


def test_nodes_are_sorted_and_in_one_option_with_the_users(tmp_path: Path) -> None:
    assert flag("b2", "a1", user=("c3", "a1"), folder=tmp_path) == "--exclude=a1,b2,c3"


def test_repeat_keeps_first_time_and_takes_the_later_word(tmp_path: Path) -> None:
    path, later = tmp_path / "excluded.json", NOON + timedelta(days=3)
    exclude.add(path, finding("a1"))
    exclude.add(path, finding("a1", later, days=1, reason="no answer"))
    (node,) = exclude.read(path).nodes
    assert (node.first_seen, node.last_seen) == (utc.text(NOON), utc.text(later))
    assert node.reason == "no answer"
    assert node.expires == utc.text(NOON + timedelta(days=14))


def test_order_of_two_findings_does_not_matter() -> None:
    one, other = finding("a1"), finding("a1", NOON + timedelta(hours=1), None, "no answer")
    both = exclude.merged(exclude.merged(ExcludeList(), one), other)
    assert both == exclude.merged(exclude.merged(ExcludeList(), other), one)
    assert both.nodes[0].expires == "never"


def test_expired_node_may_be_used_again(tmp_path: Path) -> None:
    path = tmp_path / "excluded.json"
    exclude.add(path, finding("a1", days=1))
    exclude.add(path, finding("b1", days=None))
    assert exclude.exclude_flag(path, (), NOON + timedelta(hours=23)) == "--exclude=a1,b1"
    assert exclude.exclude_flag(path, (), NOON + timedelta(hours=24)) == "--exclude=b1"


def test_only_known_nodes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "excluded.json"
    exclude.add(path, finding("a1"))
    exclude.add(path, finding("gone"))
    assert exclude.exclude_flag(path, (), NOON, known={"a1", "a2"}) == "--exclude=a1"
    assert exclude.exclude_flag(path, (), NOON, known=set()) == ""


@pytest.mark.parametrize(
    "name", ["a[1-4]", "a1,a2", "gpu-*", "ALL", "all", "-a1", "a1-", "a 1", ""]
)
def test_what_is_not_one_node_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the name of one node"):
        exclude.exclude_flag(tmp_path / "none.json", [name], NOON)


def test_fault_in_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "excluded.json"
    path.write_text('{"schema_version": 1, "nodes": [{"name": "a[1-4]"}]}')
    with pytest.raises(InputError, match=r"excluded\.json: nodes\.0\.name: found 'a\[1-4\]'"):
        exclude.read(path)


def test_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="a time without zone"):
        finding("a1").model_validate(dict(finding("a1")) | {"last_seen": "2026-01-31T12:00:00"})


def test_times_are_kept_in_utc() -> None:
    node = ExcludedNode.model_validate(
        dict(finding("a1")) | {"first_seen": "2026-01-31T13:00:00+01:00"}
    )
    assert node.first_seen == "2026-01-31T12:00:00Z"


@given(st.lists(LEGAL_NAME, min_size=1, max_size=4), st.sampled_from(["", " --nodelist=x", " "]))
def test_every_legal_name_passes_the_executors_check(names: list[str], more: str) -> None:
    option = exclude.exclude_flag(Path("no such file"), names, NOON)
    validate_slurm_extra(SimpleNamespace(resources=SimpleNamespace(slurm_extra=option + more)))
    assert shlex.split(option) == [f"--exclude={','.join(sorted(set(names)))}"]


@pytest.mark.parametrize("letter", "cntpeoACDJN")
@pytest.mark.parametrize("follows", ["", " --exclusive", ",b1"])
def test_name_that_ends_like_an_option_passes(letter: str, follows: str) -> None:
    names = [f"gpu-{letter}", *(["b1"] if follows == ",b1" else [])]
    option = exclude.exclude_flag(Path("no such file"), names, NOON)
    text = option + (follows if follows != ",b1" else "")
    validate_slurm_extra(SimpleNamespace(resources=SimpleNamespace(slurm_extra=text)))


def test_plain_names_need_no_quotes(tmp_path: Path) -> None:
    assert re.fullmatch(r"--exclude=[a-z0-9,-]+", flag("gpu-n07", "a1", folder=tmp_path))


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cluster" / "excluded.json"
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_write, args=(path, i)) for i in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=60)
    assert [writer.exitcode for writer in writers] == [0] * 8
    names = {node.name for node in exclude.read(path).nodes}
    assert names == {"shared", *(f"n{i}-{k}" for i in range(8) for k in range(5))}


def _write(path: Path, i: int) -> None:
    for k in range(5):
        exclude.add(path, finding(f"n{i}-{k}"))
        exclude.add(path, finding("shared"))
