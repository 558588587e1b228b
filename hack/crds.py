"""Write crds/ from the models of the API and of the tools' parameters; with --check, fail if it is out of date.

Types, bounds and defaults come from the fields and their `ServerOnly` annotations, rules from `rules` of the models,
descriptions from docstrings and the texts below fields. A field without a text has the description of its type.
"""

# ruff: noqa: INP001 - a script, run by path
import sys
from pathlib import Path

from definitions.parts import Schema
from definitions.schemas import described, validations, with_default
from definitions.yaml_text import written
from generated import update

from plimsoll.api.kinds import KINDS, CustomResource, PrinterColumn
from plimsoll.api.names import API_VERSION, GROUP, VERSION

DIRECTORY = Path(__file__).parent.parent / "crds"
HEADER = "# Generated from the models in plimsoll.api and plimsoll.tools by `make generate`; change them there.\n"
LABELS = {"app.kubernetes.io/name": "plimsoll", "app.kubernetes.io/part-of": "plimsoll"}


def definition(kind: CustomResource) -> Schema:
    """Return the CustomResourceDefinition of a kind."""
    schema = _schema(kind)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}", "labels": LABELS},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short_name],
                "categories": ["plimsoll"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(column, schema) for column in kind.columns],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _column(column: PrinterColumn, schema: Schema) -> Schema:
    field = schema
    for name in column.path.strip(".").split("."):
        # The API server describes metadata.
        field = field.get("properties", {}).get(name, {})
    return {
        "name": column.name,
        "type": column.type,
        **({"description": field["description"]} if field else {}),
        **({"priority": 1} if column.wide else {}),
        "jsonPath": column.path,
    }


def _schema(kind: CustomResource) -> Schema:
    status = described(kind.status, defaults=False)
    return {
        "description": kind.description,
        "type": "object",
        "required": ["spec"],
        **validations(kind.rules),
        "properties": {
            "apiVersion": _constant("Version of the schema that this object is written in.", API_VERSION),
            "kind": _constant("Kind of this object.", kind.name),
            "metadata": {"type": "object"},
            "spec": described(kind.spec, defaults=True),
            "status": with_default(status, dict(kind.initial_status)) if kind.initial_status else status,
        },
    }


def _constant(description: str, value: str) -> Schema:
    return {"description": description, "type": "string", "enum": [value]}


if __name__ == "__main__":
    fresh = [(DIRECTORY / kind.file_name, HEADER + written(definition(kind))) for kind in KINDS]
    sys.exit(update(fresh, DIRECTORY.glob("*.yaml")))
