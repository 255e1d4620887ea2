"""The Markdown page: the same content, plain. Every value is escaped unless a template says not."""

from __future__ import annotations

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perfproof.report.units import clip
from perfproof.report.view import View

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")
_LIST = re.compile(r"^(\d*)([-+=.)])(?=[-=\s]|$)")
_TEXT_LENGTH = 4_000


def page(view: View, pictures: str | None) -> str:
    """The whole document; `pictures` is the folder of the plots beside it, if they were written."""
    environment = Environment(
        loader=PackageLoader("perfproof.report"),
        autoescape=False,  # HTML rules do not fit Markdown: `finalize` escapes
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["code"] = code
    return environment.get_template("report.md.j2").render(view=view, pictures=pictures)


def escape(text: str) -> str:
    """`text` on one line, with every character escaped that Markdown or HTML could read."""
    return _LIST.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", clip(text, _TEXT_LENGTH)))


def code(text: str) -> Markup:
    """`text` as a code span that holds in a table: longer fence than its backticks, `|` escaped."""
    line = clip(text, _TEXT_LENGTH)
    if not line.strip():
        return Markup("")
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return Markup(f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|"))


def _finalize(value: Any) -> Any:
    return value if isinstance(value, Markup) else escape(str(value))
