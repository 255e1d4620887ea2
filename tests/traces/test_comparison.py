from __future__ import annotations

import shutil

import pytest

from perfproof.core.errors import InputError
from perfproof.core.files import read_record
from perfproof.schema.config import Settings
from perfproof.schema.traces import TraceComparison
from perfproof.traces.comparison import Comparison
from tests.traces.test_sides import stepped
from tests.workflow.tree import copy_repository, snakemake


def test_names_and_files(tmp_path):
    one = stepped([1]).write(tmp_path / "a{1}.pt.trace.json")
    asked = Comparison(Settings(trace_a=str(one), trace_b=str(tmp_path)))
    assert asked.folder.startswith(f"results/trace_compare/a_1_-vs-{tmp_path.name}-")
    assert asked.files_a(None) == [str(one).replace("{1}", "{{1}}")]
    assert asked.files_b(None) == asked.files_a(None)


def test_nothing_asked():
    with pytest.raises(InputError, match="trace_a: nothing; expected a trace"):
        Comparison(Settings()).files_a(None)


@pytest.mark.workflow
def test_the_target(root, tmp_path):
    tree = copy_repository(root, tmp_path / "tree")
    stepped([20, 20]).write(tree / "a.json")
    stepped([10]).write(tree / "b" / "rank0.json")
    arguments = ("-c1", "trace_compare", "--config", "trace_a=a.json", "trace_b=b")
    done = snakemake(tree, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = tree.glob("results/trace_compare/a-vs-b-*/trace_comparison.json")
    assert read_record(record, TraceComparison).totals[1].difference == -10
    assert record.with_suffix(".md").is_file()
    missing = snakemake(tree, "-n", "trace_compare", "--config", "trace_a=a.json")
    assert missing.returncode != 0
    assert "trace_b: nothing; expected a trace" in missing.stdout + missing.stderr
    shutil.rmtree(tree)
