"""The HTML page: one file, no network, no script; everything from the data is escaped."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perfproof.report.units import Missing, clip
from perfproof.report.view import View

MAX_BYTES = 3_000_000
_TEXT_LENGTH = 4_000


def page(view: View) -> str:
    """The whole document."""
    environment = Environment(
        loader=PackageLoader("perfproof.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(value=value, picture=Markup)
    environment.globals["style"] = Markup(_style(environment))
    return environment.get_template("report.html.j2").render(view=view)


def value(text: str) -> Markup:
    """Text of the data on one line, without control characters; a missing number set apart."""
    shown = Markup.escape(clip(text, _TEXT_LENGTH))
    if isinstance(text, Missing):
        return Markup('<span class="null">{}</span>').format(shown)
    return shown


def _style(environment: Environment) -> str:
    loader = environment.loader
    assert loader is not None
    return loader.get_source(environment, "style.css")[0]
