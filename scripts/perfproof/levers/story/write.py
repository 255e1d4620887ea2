"""Everything a loop leaves for people, from the last step of exploring and of the confirmation."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfproof.core.files import write_record, write_text
from perfproof.core.step import Status, parser, run
from perfproof.levers.story.banned import do_not_retry
from perfproof.levers.story.decisions import decisions
from perfproof.levers.story.plot import draw
from perfproof.levers.story.recipe import overlay
from perfproof.levers.story.record import Loop, read_loop
from perfproof.levers.story.story import story, verdict
from perfproof.levers.story.table import table


def write_all(loop: Loop, out_dir: Path) -> str:
    """Write all six files; returns the verdict in one sentence."""
    found = decisions(loop)
    write_record(out_dir / "decisions.json", found)
    write_record(out_dir / "do_not_retry.json", do_not_retry(loop))
    write_text(out_dir / "foms.csv", table(loop))
    write_text(out_dir / "best.yaml", overlay(loop.explored))
    write_text(out_dir / "story.md", story(loop, _named(out_dir)))
    draw(loop, out_dir / "foms.png")
    return verdict(found)


def _named(out_dir: Path) -> str:
    """The overlay as a command names it; an absolute place is nobody else's."""
    return "best.yaml" if out_dir.is_absolute() else (out_dir / "best.yaml").as_posix()


def main() -> None:
    """`python -m perfproof.levers.story.write`."""
    cli = parser("Write decisions, table, bans, best recipe, story and plot of a loop.")
    cli.add_argument("--loop", type=Path, required=True, help="last step of exploring")
    cli.add_argument("--confirm", type=Path, help="last step of the confirmation")
    cli.add_argument("--ending", required=True, help="label of what ended the loop")
    cli.add_argument("--levers", type=Path, help="the model's catalog: it says what levers change")
    cli.add_argument("--out-dir", type=Path, required=True, help="directory to write to")
    run(_step, cli.parse_args())


def _step(arguments: argparse.Namespace) -> Status:
    loop = read_loop(arguments.loop, arguments.confirm, arguments.ending, arguments.levers)
    return Status("ok", write_all(loop, arguments.out_dir))


if __name__ == "__main__":
    main()
