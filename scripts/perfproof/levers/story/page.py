"""Markdown from parts: headings, tables, lists. Text is escaped unless it is Markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from perfproof.levers.story.words import SAME
from perfproof.report.markdown import code as code
from perfproof.report.markdown import escape

Text = str | Markup


def plain(text: Text) -> str:
    """`text` as Markdown that shows it literally; Markup as it is."""
    # A lone tilde means nothing to Markdown.
    return str(text) if isinstance(text, Markup) or text == SAME else escape(text)


def joined(*parts: Text) -> Markup:
    """The parts in a row, each escaped unless it is Markup."""
    return Markup("".join(plain(part) if part.strip() else part for part in parts))


def codes(words: Iterable[str]) -> Markup:
    """Code spans, separated by commas."""
    return Markup(", ".join(code(word) for word in words))


def strong(text: Text) -> Markup:
    """Bold."""
    return Markup(f"**{plain(text)}**")


def heading(level: int, *parts: Text) -> str:
    """A heading of its own block."""
    return f"{'#' * level} {joined(*parts)}"


def bullets(items: Iterable[Text]) -> str:
    """A list."""
    return "\n".join(f"- {plain(item)}" for item in items)


def grid(head: Sequence[str], rows: Iterable[Sequence[Text]]) -> str:
    """A table."""
    lines = [_line(head), "|" + " --- |" * len(head), *map(_line, rows)]
    return "\n".join(lines)


def _line(cells: Sequence[Text]) -> str:
    return "| " + " | ".join(plain(cell) for cell in cells) + " |"


def document(blocks: Iterable[str]) -> str:
    """Blocks with an empty line between them."""
    return "\n\n".join(block for block in blocks if block) + "\n"
