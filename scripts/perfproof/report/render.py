"""Render the combined report as Markdown and as one self-contained HTML page."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from perfproof.core.errors import InputError
from perfproof.core.files import read_record, write_text
from perfproof.core.step import Status, ok_or_partial, parser, run
from perfproof.report import html, markdown
from perfproof.report.svg import standalone
from perfproof.report.view import View, build
from perfproof.schema.report import Report
from perfproof.schema.traces import TraceSummary


def _step(arguments: argparse.Namespace) -> Status:
    report = read_record(arguments.report, Report)
    summary = read_record(arguments.traces, TraceSummary)
    if summary.run_id != report.run.run_id:
        expected = f"'{report.run.run_id}', as in the report"
        raise InputError(arguments.traces, f"'{summary.run_id}'", expected, "run_id")
    view, faults = build(report, summary, arguments.traces.parent.parent)
    folder = _write_plots(view, arguments.plots, arguments.markdown)
    page = html.page(view)
    size = len(page.encode())
    if size > html.MAX_BYTES:
        faults.append(f"{arguments.html}: {size} bytes; expected at most {html.MAX_BYTES}")
    write_text(arguments.html, page)
    write_text(arguments.markdown, markdown.page(view, folder))
    return ok_or_partial(faults, f"open {arguments.html}")


def _write_plots(view: View, folder: Path | None, page: Path) -> str | None:
    """Write every plot as a file; the folder as seen from the Markdown `page`."""
    if folder is None:
        return None
    for plot in [*([view.where] if view.where else []), *view.plots]:
        write_text(folder / f"{plot.name}.svg", standalone(plot.svg))
    return Path(os.path.relpath(folder, page.parent)).as_posix()


def main() -> None:
    """Command line."""
    cli = parser(__doc__ or "")
    cli.add_argument("--report", type=Path, required=True, help="combined_report.json")
    cli.add_argument("--traces", type=Path, required=True, help="tables/trace_summary.json")
    cli.add_argument("--markdown", type=Path, required=True, help="combined_report.md")
    cli.add_argument("--html", type=Path, required=True, help="combined_report.html")
    cli.add_argument("--plots", type=Path, help="folder for the plots as SVG files, if wanted")
    run(_step, cli.parse_args())


if __name__ == "__main__":
    main()
