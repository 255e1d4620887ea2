"""The analysis steps of the rules, one after the other in this process: the same command lines."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import warnings
from pathlib import Path
from unittest import mock


def run_step(module: str, *arguments: object) -> tuple[int, str]:
    """Exit code and last line of output of `python -m perfproof.<module> <arguments>`."""
    out = io.StringIO()
    argv = [module, *(str(argument) for argument in arguments)]
    code: object = None
    with (
        mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out),
        warnings.catch_warnings(),
    ):
        # runpy warns that the module was imported before; that is on purpose here.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            runpy.run_module(f"perfproof.{module}", run_name="__main__")
        except SystemExit as ending:
            code = ending.code
    assert isinstance(code, int)
    return code, out.getvalue().splitlines()[-1]


def analyse(source: Path, out: Path, levers: tuple[Path, ...] = ()) -> dict[str, tuple[int, str]]:
    """Run all analysis steps on a recorded run; stop after the first that fails."""
    inventory, traces, foms = (
        out / name for name in ("inventory.json", "tables/trace_summary.json", "foms.json")
    )
    telemetry, report = out / "telemetry_summary.json", out / "combined_report.json"
    backend = out / "tracelens" / "backend.json"
    common = ("--inventory", inventory)
    steps: list[tuple[str, tuple[object, ...]]] = [
        ("artifacts.inventory", ("--root", source, "--run-id", "artifacts/x", "--out", inventory)),
        ("traces.tables", (*common, "--out-dir", out)),
        ("tracelens.run", (*common, "--traces", traces, "--backend", "builtin", "--out", backend)),
        ("telemetry.summarize", (*common, "--traces", traces, "--out", telemetry)),
        ("foms.extract", (*common, "--traces", traces, "--telemetry", telemetry, "--out", foms)),
    ]
    inputs = {"trace": ("--traces", traces), "telemetry": ("--telemetry", telemetry)}
    for kind, own in inputs.items():
        claims, verified = out / "claims" / f"{kind}.json", out / "verified" / f"{kind}.json"
        made_from = (*common, *own, "--foms", foms, "--levers", *levers, "--out", claims)
        steps.append((f"claims.analyze_{kind}", made_from))
        steps.append((f"claims.verify_{kind}", (*common, "--claims", claims, "--out", verified)))
    checked = (out / "verified" / "trace.json", out / "verified" / "telemetry.json")
    tables = ("--foms", foms, "--traces", traces, "--telemetry", telemetry)
    steps.append(("report.combine", (*common, *tables, "--verified", *checked, "--backend", backend,
                                     "--out", report)))  # fmt: skip
    pages = ("--markdown", report.with_suffix(".md"), "--html", report.with_suffix(".html"))
    steps.append(("report.render", ("--report", report, "--traces", traces, *pages)))
    endings: dict[str, tuple[int, str]] = {}
    for module, arguments in steps:
        endings[module] = run_step(module, *arguments)
        if endings[module][0]:
            break
    return endings
