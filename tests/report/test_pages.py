"""The pages: inert names, unique ids, every null with its reason, same bytes, a bounded size."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from perfproof.report import html, markdown
from perfproof.report.view import MAX_RANKS, build
from perfproof.schema.base import REASON_MEANING, Reason, Reasoned
from perfproof.schema.report import Report

VOID = {"meta", "link", "br", "img", "hr", "input"}
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</svg><script>alert(2)</script>",
    "a|b`c``d",
    "[click](javascript:alert(1))",
    "line\nbreak\x00\x1b[31m",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp;",
    "$x^2$ *bold* _it_ # heading",
]


class Page(HTMLParser):
    """Checks nesting while it parses; collects ids, links, tags and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in {"href", "xlink:href"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _pages(base: Path, parts: Any) -> tuple[str, str]:
    view, faults = build(parts.report(), parts.traces, base)
    assert faults == []
    return html.page(view), markdown.page(view, "plots")


def _nasty(parts: Any, make: Any) -> None:
    parts.claims = [
        make.claim(
            f"TR-00{i}",
            statement=text,
            params={"kernel": text},
            evidence=[{"file": text, "where": text}],
            remedy=text,
            levers=[text],
            note=text,
            author=text,
        )
        for i, text in enumerate(NASTY)
    ]
    rank = make.rank(
        device_name=NASTY[0],
        file=NASTY[1],
        findings=[{"code": NASTY[3], "severity": "bad", "value": 1, "message": NASTY[0]}],
    )
    parts.traces = make.changed(parts.traces, ranks=[rank.model_dump()])
    integrity = make.changed(parts.foms.integrity, node_list=NASTY, model=NASTY[0])
    parts.foms = make.changed(
        parts.foms,
        integrity=integrity.model_dump(),
        problems=[{"where": NASTY[1], "what": NASTY[2]}],
    )


def test_html_is_well_formed_self_contained_and_semantic(
    parts: Any, analysis: Callable[..., Path]
) -> None:
    text, _ = _pages(analysis(), parts)
    page = Page(text)
    assert text.startswith("<!doctype html>\n")
    assert Counter(page.ids).most_common(1)[0][1] == 1
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert [link for link in page.links if not link.startswith("#")] == ["data:,"]
    assert page.tags["h1"] == page.tags["main"] == page.tags["nav"] == 1
    assert page.tags["table"] == page.tags["caption"]
    scopes = [value for tag, name, value in page.attributes if (tag, name) == ("th", "scope")]
    assert len(scopes) == page.tags["th"]
    assert not page.tags["script"]
    assert "TR-001" in page.ids
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "https://" not in text


def test_sections_stand_in_their_order(parts: Any, analysis: Callable[..., Path]) -> None:
    text, plain = _pages(analysis(), parts)
    order = [text.index(f'<section id="{name}">') for name in _SECTIONS]
    assert order == sorted(order)
    assert text.index("node-a") < text.index(parts.report().verdict) < order[0]
    heads = re.findall(r"^## (.+)$", plain, re.MULTILINE)
    assert heads == ["Run", *_SECTIONS.values()]


_SECTIONS = {
    "foms": "Figures of merit",
    "bottlenecks": "Verified bottlenecks",
    "where": "Where the step goes",
    "refuted": "Refuted claims",
    "inconclusive": "Inconclusive claims",
    "authors": "Authors of claims",
    "quality": "Data quality",
    "telemetry": "Telemetry",
    "plots": "Plots",
    "limits": "What the data cannot show",
    "provenance": "Provenance",
}


def test_names_with_markup_are_inert_in_html(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    _nasty(parts, make)
    text, _ = _pages(analysis(NASTY), parts)
    page = Page(text)
    assert not page.tags["script"]
    assert not page.tags["img"]
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert not [link for link in page.links if "script" in link]
    shown = "".join(page.text)
    for name in NASTY:
        visible = "".join(c if c.isprintable() else " " for c in name)
        assert shown.count(visible) >= 4, name
    assert not re.search(r"[\x00-\x08\x1b]", text)


def test_names_with_markup_are_inert_in_markdown(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    _nasty(parts, make)
    _, text = _pages(analysis(NASTY), parts)
    prose = re.sub(r"(?<!\\)(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
    assert not re.search(r"(?<!\\)<(?!a id=\"T[RE]-\d{3}\">|/a>)", prose)
    assert not re.search(r"(?<!\\)\]\(javascript", prose)
    for block in re.split(r"\n\n+", text):
        lines = block.splitlines()
        if lines and lines[0].startswith("|"):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
            assert len(widths) == 1, block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", "a\\|b"),
        ("<b>", "\\<b\\>"),
        ("1. item", "1\\. item"),
        ("- item", "\\- item"),
        ("1.5 s", "1.5 s"),
        ("[x](y)", "\\[x\\](y)"),
        ("back\\slash", "back\\\\slash"),
    ],
)
def test_markdown_escape(text: str, expected: str) -> None:
    assert markdown.escape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("k<f>", "`k<f>`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a\\|b`"), (" ", "")],
)
def test_markdown_code(text: str, expected: str) -> None:
    assert str(markdown.code(text)) == expected


def _nulls(record: BaseModel) -> list[Reason]:
    """The reasons of all nulls in a record and the records below it."""
    found = list(record.reasons.values()) if isinstance(record, Reasoned) else []
    for name in type(record).model_fields:
        value = getattr(record, name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, BaseModel):
                found += _nulls(item)
    return found


def _hollow(record: Any, make: Any, keep: set[str]) -> Any:
    """The record with every field null that may be, each with its own reason."""
    changes = {}
    reasons = [reason for reason in Reason if reason is not Reason.NO_LOG]
    for index, (name, field) in enumerate(type(record).model_fields.items()):
        if name not in keep and type(None) in getattr(field.annotation, "__args__", ()):
            changes[name] = reasons[index % len(reasons)]
    return make.changed(record, **changes)


def _all_null(parts: Any, make: Any) -> None:
    foms = make.changed(
        parts.foms,
        primary=_hollow(parts.foms.primary, make, set()).model_dump(),
        integrity=_hollow(parts.foms.integrity, make, set()).model_dump(),
        steady_step_times_s=[],
        loss_curve=[{"epoch": 0, "loss": None, "reasons": {"loss": "non_finite"}}],
    )
    parts.foms = _hollow(foms, make, set())
    gpus = [_hollow(gpu, make, set()).model_dump() for gpu in parts.telemetry.gpus]
    parts.telemetry = _hollow(make.changed(parts.telemetry, gpus=gpus), make, set())
    ranks = [_hollow(rank, make, set()).model_dump() for rank in parts.traces.ranks]
    parts.traces = make.changed(parts.traces, ranks=ranks)
    parts.claims = [_hollow(claim, make, set()) for claim in parts.claims]
    parts.manifest = None


def test_every_null_is_shown_with_its_reason(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    _all_null(parts, make)
    text, plain = _pages(analysis(), parts)
    report = parts.report()
    card = Counter(report.run.reasons.values())
    nulls = _nulls(report) + [reason for rank in parts.traces.ranks for reason in _nulls(rank)]
    assert len(nulls) > 45
    shown = Page(text)
    assert "None" not in re.sub("None\\.", "", "".join(shown.text))
    for reason, count in Counter(nulls).items():
        words = f"— ({REASON_MEANING[reason]})"
        count -= max(0, card[reason] - 1)  # the run card tells a reason once
        assert "".join(shown.text).count(words) >= count, words
        assert plain.count(markdown.escape(words)) >= count, words


def test_the_run_card_groups_what_is_unknown(parts: Any, analysis: Callable[..., Path]) -> None:
    parts.manifest = None
    text, _ = _pages(analysis(), parts)
    why = REASON_MEANING[Reason.NO_MANIFEST]
    line = f'Trial, State, Exit code, Started, Duration: <span class="null">— ({why})</span>'
    assert line in text


def test_a_damaged_trace_is_told_beside_its_bar(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    finding = {"code": "repaired", "severity": "bad", "value": 1, "message": "file cut short"}
    ranks = [make.rank(0), make.rank(1, findings=[finding])]
    parts.traces = make.changed(parts.traces, ranks=[rank.model_dump() for rank in ranks])
    text, _ = _pages(analysis(), parts)
    assert "Do not trust the bars of rank 1: their traces are damaged." in text


def test_long_parameters_are_cut(parts: Any, make: Any, analysis: Callable[..., Path]) -> None:
    parts.claims = [make.claim(params={"regex": "x" * 5000}), make.claim("TR-002", params={})]
    text, _ = _pages(analysis(), parts)
    assert "x" * 101 not in text
    assert "<code>gpu_idle_fraction</code>" in text


def test_the_ranking_shows_the_first_sentence(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    statement = "9.9 % of rank 0 runs k.f64. Profiling stretched the step."
    parts.claims = [make.claim(statement=statement)]
    text, _ = _pages(analysis(), parts)
    assert '<td class="headline">9.9 % of rank 0 runs k.f64.</td>' in text
    assert f'<p class="statement">{statement}</p>' in text


def test_nulls_beside_numbers(parts: Any, make: Any, analysis: Callable[..., Path]) -> None:
    spread = make.changed(parts.foms.step_time_s, standard_error=Reason.TOO_FEW_VALUES)
    parts.foms = make.changed(parts.foms, step_time_s=spread.model_dump())
    text, _ = _pages(analysis(), parts)
    assert "standard error over steps — (too few values for this statistic)" in text


def test_a_report_says_when_a_picture_cannot_be_drawn(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    parts.foms = make.changed(
        parts.foms,
        steady_step_times_s=[],
        step_time_s=Reason.NO_STEP_TIMES_IN_LOG,
        loss_curve=[],
        final_loss=Reason.NO_LOSS_LINES,
    )
    base = analysis()
    parts.traces = make.changed(parts.traces, ranks=[make.rank(gpu_events=0).model_dump()])
    text, _ = _pages(base, parts)
    assert "<svg" not in text
    assert "No steps to draw: this log format does not print the time of a step." in text
    assert "No loss to draw: the log prints no loss." in text
    assert "No rank has a device timeline that can be read" in text


def test_the_largest_pages_stay_below_the_cap(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    finding = {"code": "unlinked_gpu_events", "severity": "warn", "value": 1, "message": "m" * 200}
    ranks = [make.rank(i, world_size=64, findings=[finding] * 16) for i in range(64)]
    parts.traces = make.changed(parts.traces, ranks=[rank.model_dump() for rank in ranks])
    curve = [{"epoch": i, "loss": 1.0 / (i + 1)} for i in range(500)]
    times = [0.1 + (i % 97) * 1e-4 for i in range(50_000)]
    parts.foms = make.changed(parts.foms, loss_curve=curve, steady_step_times_s=times)
    parts.claims = [make.claim(f"TR-{i:03d}", statement="s" * 400) for i in range(100)]
    text, _ = _pages(analysis(["k" * 5000 + str(i) for i in range(50)]), parts)
    assert len(text.encode()) <= html.MAX_BYTES
    assert f"The {MAX_RANKS} of 64 ranks whose GPU idles most." in text


def _render(base: Path, *more: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perfproof.report.render", "--report", "combined_report.json"]
    command += ["--traces", "tables/trace_summary.json", "--markdown", "out/r.md"]
    return subprocess.run(
        [*command, "--html", "out/r.html", *more],
        cwd=base,
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_renders_are_the_same_bytes(parts: Any, analysis: Callable[..., Path]) -> None:
    base = analysis()
    seen = []
    for seed in ("1", "2"):
        done = _render(base, "--plots", "out/plots", seed=seed)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("STATUS=ok; reason=open out/r.html\n")
        files = sorted(path for path in (base / "out").rglob("*") if path.is_file())
        seen.append({path.relative_to(base).as_posix(): path.read_bytes() for path in files})
    assert seen[0] == seen[1]
    assert len(seen[0]) == 6
    for link in re.findall(rb"\]\((.+?\.svg)\)", seen[0]["out/r.md"]):
        assert f"out/{link.decode()}" in seen[0]


def test_a_changed_table_is_told_and_the_page_still_made(
    parts: Any, analysis: Callable[..., Path]
) -> None:
    base = analysis()
    (base / "tables/rank-0/window_timeline.csv").write_text("type,time ms,percent\n")
    done = _render(base)
    assert done.returncode == 0
    assert "STATUS=partial; reason=tables/rank-0/window_timeline.csv: another digest" in done.stdout
    assert "cannot be drawn" in (base / "out/r.html").read_text()
    assert "Top kernels" in (base / "out/r.html").read_text()


def test_tables_of_another_run_are_refused(
    parts: Any, make: Any, analysis: Callable[..., Path]
) -> None:
    base = analysis()
    summary = make.changed(parts.traces, run_id="other")
    (base / "tables/trace_summary.json").write_text(summary.model_dump_json())
    done = _render(base)
    assert done.returncode == 1
    assert "run_id: 'other'; expected 'mace/baseline/nodes-1/rep-0'" in done.stdout


def test_full_precision_stays_in_the_record(parts: Any, make: Any) -> None:
    parts.claims = [make.claim(value=0.123456789012345)]
    report = parts.report()
    again = Report.model_validate_json(report.model_dump_json(by_alias=True))
    assert again.claims[0].value == 0.123456789012345
    assert again == report
