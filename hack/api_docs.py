"""Write docs/reference/api from the definitions in crds/; with --check, fail if it is out of date."""

# ruff: noqa: INP001 - a script, run by path
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from generated import update

from plimsoll.api.kinds import KINDS

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "reference" / "api"
INTRODUCTION = """# {kind}

<!-- Generated from crds/ by `make generate`; the descriptions are in the docstrings of the models. -->

{description}

`kubectl explain {singular}.spec --recursive` shows the same on a cluster. A field without a default and without
"required" is optional. The API server refuses unknown fields, and objects that break a rule below the tables.
"""

# Where suites have fields of the specification of a run.
PARTS_OF_RUNS = ("spec.run", "spec.variants[].set")

_TYPES = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}

Schema = Mapping[str, Any]


def files() -> Iterator[tuple[Path, str]]:
    """Yield the page of each kind."""
    for kind in KINDS:
        yield PAGES / f"{kind.name}.md", page(yaml.safe_load((ROOT / "crds" / kind.file_name).read_text()))


def page(crd: Schema) -> str:
    """Return the page of a kind."""
    return "\n".join(_lines(crd))


def _lines(crd: Schema) -> Iterator[str]:
    names = crd["spec"]["names"]
    (version,) = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    yield INTRODUCTION.format(**names, description=schema["description"])
    yield (
        f"`{crd['spec']['group']}/{version['name']}`, {crd['spec']['scope'].lower()}; "
        f"`kubectl get {names['plural']}`, short `{names['shortNames'][0]}`.\n"
    )
    yield from _rules(schema)
    yield from _columns(version["additionalPrinterColumns"])
    for part in ("spec", "status"):
        yield from _object(schema["properties"][part], part)


def _columns(columns: list[Schema]) -> Iterator[str]:
    yield "| column | with `-o wide` only | shows |\n|---|---|---|"
    for column in columns:
        wide = "yes" if column.get("priority") else ""
        yield f"| {column['name']} | {wide} | {column.get('description', 'Time since it was created.')} |"
    yield ""


def _object(schema: Schema, path: str) -> Iterator[str]:
    """Yield the table of one object's fields, then the tables of the objects within."""
    yield f"## {path}\n"
    yield f"{schema['description']}\n"
    if path in PARTS_OF_RUNS:
        names = ", ".join(f"`{name}`" for name in schema["properties"])
        yield f"Fields of the [spec of a BenchmarkRun](BenchmarkRun.md#spec), all optional: {names}.\n"
        return
    if schema.get("default"):
        yield f"Default: `{_value(schema['default'])}`\n"
    yield "| field | type | default | bounds | description |\n|---|---|---|---|---|"
    for name, field in schema["properties"].items():
        default = "required" if name in schema.get("required", ()) else _default(field)
        cells = (f"`{name}`", _type(field), default, _bounds(field), field["description"])
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
    yield ""
    yield from _rules(schema, path)
    for name, field in schema["properties"].items():
        place, inner = _inner(field, f"{path}.{name}")
        if "properties" in inner:
            yield from _object(inner, place)


def _inner(field: Schema, path: str) -> tuple[str, Schema]:
    """Return the innermost schema of lists and mappings, and its path."""
    if "items" in field:
        return _inner(field["items"], f"{path}[]")
    if isinstance(field.get("additionalProperties"), dict):
        return _inner(field["additionalProperties"], f"{path}.*")
    return path, field


def _rules(schema: Schema, path: str = "") -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for rule in _all_rules(schema):
        places.setdefault(rule["message"], []).append(f"{path}{rule.get('fieldPath', '')}")
    if places:
        yield "Rules:\n"
        for message, fields in places.items():
            named = ", ".join(f"`{field}`" for field in dict.fromkeys(fields) if field)
            yield f"- {named}: {message}." if named else f"- {message}."
        yield ""


def _all_rules(schema: Schema) -> Iterator[Schema]:
    """Yield the rules of an object, and of its fields without a table of their own."""
    yield from schema.get("x-kubernetes-validations", ())
    for name, field in schema["properties"].items():
        if "properties" not in field:
            yield from ({"fieldPath": f".{name}", **rule} for rule in field.get("x-kubernetes-validations", ()))


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if "items" in field:
        unique = "different " if field.get("x-kubernetes-list-type") == "set" else ""
        return f"list of {unique}{_plural(_type(field['items']))}"
    if isinstance(field.get("additionalProperties"), dict):
        return f"mapping to {_plural(_type(field['additionalProperties']))}"
    if field.get("x-kubernetes-preserve-unknown-fields"):
        return "mapping to any values"
    if "properties" in field:
        return "object"
    return {"date-time": "time"}.get(field.get("format", ""), _TYPES[field["type"]])


def _plural(kind: str) -> str:
    return {"quantity": "quantities", "text": "texts"}.get(kind, f"{kind}s")


def _default(field: Schema) -> str:
    return f"`{_value(field['default'])}`" if field.get("default") not in (None, {}, []) else ""


def _value(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("\n...\n").strip()


def _bounds(field: Schema) -> str:
    parts = [_choice(field), _range(field), _length(field), _pattern(field)]
    if "items" in field:
        parts = [_items(field), *(f"each {part}" for part in [_bounds(field["items"])] if part)]
    return "; ".join(part for part in parts if part)


def _choice(field: Schema) -> str:
    return ", ".join(f"`{value}`" for value in field.get("enum", ()))


def _range(field: Schema) -> str:
    low, high = field.get("minimum"), field.get("maximum")
    least = f"above {low}" if "exclusiveMinimum" in field else f"at least {low}"
    text = f"{low} to {high}" if low is not None and high is not None else least if low is not None else ""
    return text + (f", a multiple of {field['multipleOf']}" if "multipleOf" in field else "")


def _length(field: Schema) -> str:
    if "maxProperties" in field:
        return f"at most {field['maxProperties']} entries"
    if "maxLength" not in field or field.get("format") == "date-time" or field.get("x-kubernetes-int-or-string"):
        return ""
    low = f"{field['minLength']} to" if "minLength" in field else "at most"
    return f"{low} {field['maxLength']} characters"


def _pattern(field: Schema) -> str:
    return f"`{field['pattern']}`" if "pattern" in field else ""


def _items(field: Schema) -> str:
    low = f"{field['minItems']} to" if "minItems" in field else "at most"
    return f"{low} {field['maxItems']} entries"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    sys.exit(update(files()))
