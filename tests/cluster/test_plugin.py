"""The executor as Snakemake finds it: by name, with its settings."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import pytest
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from snakemake_executor_plugin_slurm_bounded import ExecutorSettings

OWN = {"status_pause": 5, "grace": 300, "lost": 120, "queue_limit": 0}


def test_snakemake_finds_the_executor_and_its_settings() -> None:
    plugin = ExecutorPluginRegistry().get_plugin("slurm-bounded")
    assert plugin.settings_cls is ExecutorSettings
    defaults = {field.name: (field.type, field.default) for field in fields(ExecutorSettings)}
    assert {name: defaults[name] for name in OWN} == {name: (int, OWN[name]) for name in OWN}
    assert plugin.get_cli_arg("grace") == "--slurm-bounded-grace"


def test_executor_does_not_run_locally() -> None:
    assert ExecutorPluginRegistry().get_plugin("slurm-bounded").common_settings.non_local_exec


@pytest.mark.parametrize(("name", "value"), [("status_pause", 0), ("lost", 0), ("queue_limit", -1)])
def test_bound_that_bounds_nothing_is_refused(name: str, value: int) -> None:
    with pytest.raises(WorkflowError, match=f"--slurm-bounded-{name.replace('_', '-')}: {value};"):
        ExecutorSettings(**{name: value})


def test_the_plugin_leaves_the_package_to_the_snakefile() -> None:
    """Snakemake imports every plugin at its start; the Snakefile's checkout must come first."""
    code = "import sys, snakemake_executor_plugin_slurm_bounded; print('perfproof' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
