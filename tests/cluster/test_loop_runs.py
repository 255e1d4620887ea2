"""The optimizer loop on real nodes, one of them bad: the lever pays for nothing that is not its."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfproof.cluster import exclude
from perfproof.core.files import read_record
from perfproof.schema.loop import LoopState
from tests.cluster.testbed import Testbed
from tests.cluster.workflow_run import WorkflowRun

pytestmark = [pytest.mark.cluster, pytest.mark.slow_cluster]
LEVER = "null_unread_variable"


def test_a_loop_stays_on_its_nodes_and_away_from_a_bad_one(
    four_nodes: Testbed, root: Path, tmp_path: Path
) -> None:
    four_nodes.reset()
    shared = tmp_path / "shared"
    shared.mkdir()
    run = WorkflowRun(four_nodes, tmp_path, root, shared_paths=[str(shared)])
    decision = '{"baseline_runs":3,"confirmation_pairs":2}'
    settings = {"model": "orbit2", "loop": "mine", "budget": 9, "levers": f"[{LEVER}]"}
    try:
        with four_nodes.mounted("a1", "-t", "tmpfs", "-o", "ro", "none", str(shared)):
            run.perf_report("optimizer_loop", **settings, decision=decision)
            assert run.wait(400) == 0, run.log
    finally:
        run.end()
    folder = run.tree / "results/orbit2/loops/mine"
    state = read_record(folder / "steps" / "5.json", LoopState)
    # The bad node cost a submission, and neither the loop nor its lever knows of it.
    (bad,) = exclude.read(run.tree / exclude.EXCLUDE_FILE).nodes
    assert bad.name == "a1"
    assert [result.ending for result in state.results] == ["measured"] * 5
    (lever,) = [record for record in state.levers if record.id == LEVER]
    assert (lever.runs, lever.failures) == (2, 0)
    # Equal nodes for all: the first run's are asked for again.
    assert len({tuple(result.node_list or ()) for result in state.results}) == 1
    assert not state.nodes_since
    assert (folder / "runs-9" / "story.md").is_file()
