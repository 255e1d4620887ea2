"""From a matplotlib figure to an SVG that is the same bytes everywhere and fits any page.

Text stays text, the ink follows the page's colour (light or dark), ids are unique per plot, and
title and description say what the picture shows.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

INK = "#010203"  # stands for the page's text colour; becomes `currentColor`
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "perfproof",
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def settings() -> Iterator[None]:
    """Matplotlib's defaults plus ours: what a user's configuration says does not matter."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def render(figure: Figure, name: str, title: str, description: str) -> str:
    """The figure as an inline SVG element; `name` prefixes its ids."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    root = ET.fromstring(buffer.getvalue())
    _strip(root)
    _rename(root, name)
    _label(root, name, title, description)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    return _themed(ET.tostring(root, encoding="unicode"))


def standalone(svg: str) -> str:
    """The same picture as a file of its own: it brings the colours that a page would give it."""
    style = (
        "<style>svg{color:#1b1f24;font-family:system-ui,sans-serif}"
        "@media(prefers-color-scheme:dark){svg{color:#e6e9ed}}</style>"
    )
    head, tail = svg.split(">", 1)
    return f"{head}>{style}{tail}\n"


def _strip(root: ET.Element) -> None:
    """Drop metadata, the fixed size and the style that would leak; the view box stays."""
    for child in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(child)
    for definitions in root.findall(f"{{{_SVG}}}defs"):
        for style in definitions.findall(f"{{{_SVG}}}style"):
            definitions.remove(style)
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)


def _rename(root: ET.Element, name: str) -> None:
    """Prefix every id that something refers to; drop the others."""
    text = ET.tostring(root, encoding="unicode")
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    for element in root.iter():
        found = element.attrib.pop("id", None)
        if found in used:
            element.set("id", f"{name}-{found}")
        for key, value in element.attrib.items():
            value = re.sub(r"url\(#", f"url(#{name}-", value)
            element.set(key, f"#{name}-{value[1:]}" if key.endswith("href") else value)


def _label(root: ET.Element, name: str, title: str, description: str) -> None:
    """Title and description, for those who do not see the picture."""
    for position, (kind, text) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(f"{{{_SVG}}}{kind}", {"id": f"{name}-{kind}"})
        element.text = text
        root.insert(position, element)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")


def _themed(text: str) -> str:
    """The page's ink and font instead of fixed ones."""
    text = text.replace(INK, "currentColor")
    text = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font-size: \1px", text)
    return re.sub(r"font-family: [^;\"]*;? ?", "", text)
