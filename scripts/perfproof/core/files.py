"""Files: canonical JSON, digests, atomic writes. Same content, same bytes, on every machine."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, TypeVar

import blake3
import yaml
from pydantic import BaseModel, ValidationError

from perfproof.core.errors import InputError, nearest

# The safe loader, seven times as fast where PyYAML has libyaml.
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Model = TypeVar("Model", bound=BaseModel)


def canonical_json(data: Any) -> str:
    """JSON with sorted keys, two-space indent and a final newline. NaN and infinity are refused."""
    return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` whole or not at all (a killed writer leaves the old file)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A lone surrogate, from a name or a log, cannot be UTF-8: it is shown as its escape.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()


def write_record(path: Path, record: BaseModel) -> None:
    """Write a pydantic `record` as canonical JSON, under its public (alias) names."""
    write_text(path, canonical_json(record.model_dump(mode="json", by_alias=True)))


def read_json(path: Path) -> Any:
    """Read JSON, or raise `InputError` with the path and the place of the fault."""
    text = _text(path, "a JSON file")
    try:
        return json.loads(text)
    # Besides JSONDecodeError: numbers of thousands of digits, and nesting beyond all use.
    except (ValueError, RecursionError) as fault:
        raise InputError(path, f"not JSON ({_short(fault)})", "a JSON file") from None


def read_yaml(path: Path) -> Any:
    """Read YAML, or raise `InputError` with the path and the place of the fault."""
    text = _text(path, "a YAML file")
    try:
        return yaml.load(text, Loader=_YAML)
    except (yaml.YAMLError, ValueError, RecursionError) as fault:
        raise InputError(path, f"not YAML ({_short(fault)})", "a YAML file") from None


def read_text(path: Path) -> str:
    """Read a UTF-8 text, or raise `InputError` with its path."""
    return _text(path, "a text file")


def _text(path: Path, expected: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(path, "no such file", expected) from None
    except OSError as fault:
        raise InputError(path, str(fault.strerror), expected) from None
    except UnicodeDecodeError:
        raise InputError(path, "not UTF-8 text", expected) from None


def _short(fault: Exception) -> str:
    return " ".join(str(fault).split())[:200]


def read_record(path: Path, kind: type[Model]) -> Model:
    """Read a JSON file as the pydantic model `kind`, or raise `InputError` naming the key."""
    return validate(read_json(path), kind, path)


def validate(data: Any, kind: type[Model], where: Path | str) -> Model:
    """Check `data` against `kind`; the error names the first bad key and the nearest valid one."""
    try:
        return kind.model_validate(data)
    except ValidationError as fault:
        raise _as_input_error(fault, kind, where) from None


def _as_input_error(fault: ValidationError, kind: type[BaseModel], where: Path | str) -> InputError:
    first = fault.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        hint = nearest(str(first["loc"][-1]), _fields_at(kind, first["loc"][:-1]))
        return InputError(where, "unknown key", hint, key)
    found = first.get("input")
    shown = "nothing" if first["type"] == "missing" else repr(found)[:80]
    return InputError(where, f"found {shown}", first["msg"], key or kind.__name__)


def _fields_at(kind: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The valid keys of the model nested at `loc`, as far as annotations tell."""
    here: type[BaseModel] | None = kind
    for part in loc:
        # A part that is no field is a list index or the free name of a mapping's entry.
        field = here.model_fields.get(str(part)) if here else None
        here = _model_in(field.annotation) if field else here
    return [field.alias or name for name, field in here.model_fields.items()] if here else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The first model named in an annotation, e.g. `Upstream` in `dict[str, Upstream]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(argument) for argument in getattr(annotation, "__args__", ()))
    return next((found for found in inner if found), None)


def digest_bytes(data: bytes) -> str:
    """BLAKE3 of `data`, hex."""
    return blake3.blake3(data).hexdigest()


def digest_file(path: Path) -> str:
    """BLAKE3 of a file, hex; read in blocks, so memory stays flat."""
    hasher = blake3.blake3()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            hasher.update(block)
    return hasher.hexdigest()


def digest_record(record: BaseModel) -> str:
    """BLAKE3 of a record's canonical JSON, hex."""
    return digest_bytes(canonical_json(record.model_dump(mode="json", by_alias=True)).encode())
