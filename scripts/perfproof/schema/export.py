"""Generate what must agree with the models: JSON Schemas, default config, documentation tables.

`python -m perfproof.schema.export` writes them; with `--check` it only says which are stale.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from perfproof.core import step
from perfproof.core.files import canonical_json, write_text
from perfproof.schema import (
    authors,
    claims,
    cluster,
    config,
    decision,
    decisions,
    foms,
    gpus,
    levers,
    loop,
    report,
    run,
    telemetry,
    tracelens,
    traces,
)
from perfproof.schema.base import REASON_MEANING

SCHEMAS: dict[str, type[BaseModel]] = {
    "settings": config.Settings,
    "recipe": config.Recipe,
    "resolved_recipe": config.ResolvedRecipe,
    "levers": levers.LeverCatalog,
    "cluster": config.Cluster,
    "gpu": gpus.GpuPeaks,
    "loop": loop.LoopSpec,
    "loop_step": loop.LoopState,
    "probe_choice": loop.ProbeChoice,
    "decisions": decisions.Decisions,
    "do_not_retry": decisions.DoNotRetry,
    "replay": decisions.Replay,
    "manifest": run.Manifest,
    "inventory": run.Inventory,
    "launch_record": run.LaunchRecord,
    "ending": cluster.RunEnding,
    "excluded_nodes": cluster.ExcludeList,
    "node_health": cluster.HealthReport,
    "preflight": cluster.Preflight,
    "foms": foms.Foms,
    "comparison": foms.Comparison,
    "trace_summary": traces.TraceSummary,
    "trace_comparison": traces.TraceComparison,
    "trace_quality": traces.TraceQuality,
    "trace_backend": tracelens.TraceBackend,
    "telemetry_summary": telemetry.TelemetrySummary,
    "claims": claims.ClaimSet,
    "verified_claims": claims.VerifiedSet,
    "author": authors.AuthorRecord,
    "combined_report": report.Report,
}
_CONFIG_TABLES: tuple[type[BaseModel], ...] = (
    config.Settings,
    decision.Decision,
    config.Recipe,
    config.Training,
    config.Profile,
    config.Parallel,
    config.Cluster,
    config.Container,
    config.Health,
    config.Upstream,
    gpus.GpuPeaks,
    gpus.Figure,
    levers.Lever,
    levers.Requires,
    levers.Expected,
    levers.EffectProof,
    levers.Verdict,
    levers.Fingerprint,
    levers.KnownNoise,
)
_BEGIN, _END = "<!-- generated: begin -->", "<!-- generated: end -->"


def generated(root: Path) -> dict[Path, str]:
    """Every generated file of the repository `root` with the text it must have."""
    files: dict[Path, str] = {
        root / "config" / "schemas" / f"{name}.schema.json": schema_text(model)
        for name, model in SCHEMAS.items()
    }
    files[root / "config" / "config.yaml"] = default_config()
    files[root / "docs" / "reasons.md"] = reasons_table()
    readme = root / "config" / "README.md"
    files[readme] = between_markers(readme, "\n".join(map(fields_table, _CONFIG_TABLES)))
    files[root / "docs" / "metrics.md"] = _markdown("claims.metrics_doc", "metrics_markdown")
    files[root / "docs" / "queries.md"] = _markdown("telemetry.queries_doc", "queries_markdown")
    return files


def _markdown(module: str, function: str) -> str:
    # By name: the schema package must not depend on a stage.
    writer: Callable[[], str] = getattr(importlib.import_module(f"perfproof.{module}"), function)
    return writer()


def schema_text(model: type[BaseModel]) -> str:
    """JSON Schema (draft 2020-12) of a record, under its public names."""
    schema = model.model_json_schema(by_alias=True)
    return canonical_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def default_config() -> str:
    """`config/config.yaml`: every setting with its default, each under its description."""
    lines = ["# Generated from perfproof.schema.config.Settings; override with --config key=value."]
    for name, field in config.Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        lines.append(f"# {field.description}")
        lines += (
            _default_section(name, default)
            if isinstance(default, BaseModel)
            else [yaml.safe_dump({name: default}, default_flow_style=False).strip()]
        )
    return "\n".join(lines) + "\n"


def _default_section(name: str, section: BaseModel) -> list[str]:
    lines = [f"{name}:"]
    for key, field in type(section).model_fields.items():
        value = yaml.safe_dump({key: getattr(section, key)}).strip()
        lines += [f"  # {field.description}", f"  {value}"]
    return lines


def reasons_table() -> str:
    """`docs/reasons.md`."""
    rows = [f"| `{reason.value}` | {text} |" for reason, text in REASON_MEANING.items()]
    head = "# Why a number is null\n\nEvery null in a record carries one of these codes.\n"
    return "\n".join([head, "| code | meaning |", "|---|---|", *rows]) + "\n"


def fields_table(model: type[BaseModel]) -> str:
    """A Markdown table of a model's keys, types, defaults and meanings."""
    lines = [f"### {model.__name__}", "", (model.__doc__ or "").strip(), ""]
    lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
    properties = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        kind = _type_words(properties[name])
        lines.append(f"| `{name}` | {kind} | {_default(field)} | {field.description or ''} |")
    return "\n".join([*lines, ""])


def _type_words(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type_words(option) for option in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    reference = schema.get("$ref") or next((s["$ref"] for s in schema.get("allOf", [])), None)
    return str(reference).rsplit("/", 1)[1] if reference else str(schema.get("type", "any"))


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined or isinstance(value, BaseModel):
        return "see its table"
    return f"`{'null' if value is None else value}`"


def between_markers(path: Path, text: str) -> str:
    """The file at `path` with the part between the generated markers replaced by `text`."""
    before, _, rest = path.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    return f"{before}{_BEGIN}\n{text}\n{_END}{after}"


def _step(arguments: argparse.Namespace) -> step.Status:
    stale = [
        (path, text)
        for path, text in generated(arguments.root).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    names = ", ".join(str(path.relative_to(arguments.root)) for path, _ in stale)
    if arguments.check and stale:
        return step.Status("fail", f"stale: {names}; run python -m perfproof.schema.export")
    for path, text in stale:
        write_text(path, text)
    return step.Status("ok", f"wrote {names}" if stale else "all current")


def main() -> None:
    """Command line."""
    parser = step.parser("Generate schemas, default configuration and documentation tables.")
    parser.add_argument("--root", type=Path, default=Path(), help="the repository")
    parser.add_argument("--check", action="store_true", help="write nothing, fail when stale")
    step.run(_step, parser.parse_args())


if __name__ == "__main__":
    main()
