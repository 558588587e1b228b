"""The generator of crds/: what it makes of models, and that what is committed is what it makes."""

import importlib
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
import yaml
from pydantic import Field, JsonValue

from plimsoll.api.model import BlockSize, Count, Flag, Integer, Model, Rule, ServerOnly, Size

HACK = Path(__file__).parents[3] / "hack"


@pytest.fixture(autouse=True)
def _modules_of_hack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HACK))


def schema(model: type[Model], *, defaults: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = importlib.import_module("definitions.schemas").described(model, defaults=defaults)
    return found


def field(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """Return the schema of a field of that type, without its description."""

    class One(Model):
        """An object."""

        part: annotation = default
        """What it is."""

    (found,) = schema(One)["properties"].values()
    assert found.pop("description") == "What it is."
    return dict(found)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(Model):
    """An object inside.

    With more to say about it.
    """

    size: Annotated[Integer, Field(ge=1, le=3, description="How large it is.")] = 2


_SIZE = {
    "description": "How large it is.",
    "type": "integer",
    "format": "int32",
    "minimum": 1,
    "maximum": 3,
    "default": 2,
}
_INNER = {
    "description": "An object inside. With more to say about it.",
    "type": "object",
    "properties": {"size": _SIZE},
}


class Outer(Model):
    """An object."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(rule="self.firstPart != ''", message="must be set", field_path=".firstPart", reason="FieldValueRequired"),
    )

    first_part: Annotated[str, Field(max_length=5)]
    """What it is: a text that goes on
    in a second line."""
    second_part: Inner = Inner()
    third_part: Inner | None = None


def test_what_is_committed_is_what_the_models_say() -> None:
    done = subprocess.run(
        [sys.executable, str(HACK / "crds.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_model_is_an_object_with_descriptions_rules_and_defaults() -> None:
    assert schema(Outer) == {
        "description": "An object.",
        "type": "object",
        "required": ["firstPart"],
        "x-kubernetes-validations": [
            {
                "rule": "self.firstPart != ''",
                "message": "must be set",
                "reason": "FieldValueRequired",
                "fieldPath": ".firstPart",
            }
        ],
        "properties": {
            "firstPart": {
                "description": "What it is: a text that goes on in a second line.",
                "type": "string",
                "maxLength": 5,
            },
            "secondPart": _INNER | {"default": {}},
            "thirdPart": _INNER,
        },
    }


def test_what_programs_write_has_no_defaults() -> None:
    properties = schema(Outer, defaults=False)["properties"]
    assert "default" not in properties["secondPart"]
    assert "default" not in properties["secondPart"]["properties"]["size"]


def test_inherited_fields_are_described_by_the_model_that_has_them() -> None:
    class Longer(Outer):
        """A longer object."""

    assert schema(Longer)["properties"]["firstPart"] == schema(Outer)["properties"]["firstPart"]


def test_a_field_without_a_description_is_refused() -> None:
    class Silent(Model):
        """An object."""

        part: str

    with pytest.raises(ValueError, match=r"Silent\.part has no description"):
        schema(Silent)


def test_a_default_of_a_model_that_is_not_that_of_its_fields_is_refused() -> None:
    class Odd(Model):
        """An object."""

        part: Inner = Inner(size=3)
        """What it is."""

    with pytest.raises(ValueError, match="default of a Inner"):
        schema(Odd)


_Text = Annotated[str, Field(description="An entry."), ServerOnly(max_length=9)]
_ENTRY = {"description": "An entry.", "type": "string", "maxLength": 9}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, {"type": "string"}),
        (Annotated[str, Field(pattern="^a$", min_length=1)], {"type": "string", "minLength": 1, "pattern": "^a$"}),
        (str | None, {"type": "string"}),
        (Flag, {"type": "boolean"}),
        (float, {"type": "number"}),
        (int, {"type": "integer", "format": "int64"}),
        (Count, {"type": "integer", "format": "int64", "minimum": 0}),
        (
            Annotated[float, ServerOnly(minimum=0, above_minimum=True)],
            {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        ),
        (Annotated[Integer, Field(ge=1)] | None, {"type": "integer", "format": "int32", "minimum": 1}),
        (Annotated[str, ServerOnly(format="date-time")], {"type": "string", "format": "date-time"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Annotated[int, ServerOnly(shape=str, max_length=4)], {"type": "string", "maxLength": 4}),
        (
            Annotated[str, Rule(rule="self != 'a'", message="must be another")],
            {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self != 'a'", "message": "must be another"}],
            },
        ),
        (
            Annotated[tuple[_Text, ...], Field(min_length=1), ServerOnly(max_length=3)],
            {"type": "array", "x-kubernetes-list-type": "atomic", "minItems": 1, "maxItems": 3, "items": _ENTRY},
        ),
        (
            Annotated[tuple[_Text, ...], ServerOnly(list_type="set")],
            {"type": "array", "x-kubernetes-list-type": "set", "items": _ENTRY},
        ),
        (
            Annotated[tuple[Inner, ...], ServerOnly(list_keys=("size",))],
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["size"],
                "items": _INNER,
            },
        ),
        (
            Annotated[dict[str, _Text], ServerOnly(max_length=2)],
            {"type": "object", "maxProperties": 2, "additionalProperties": _ENTRY},
        ),
        (dict[str, JsonValue], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    ],
)
def test_type_of_a_field(annotation: Any, expected: dict[str, Any]) -> None:
    assert field(annotation) == expected


def test_a_size_within_a_pattern_is_bounded_by_it_and_as_a_number() -> None:
    found = field(Annotated[BlockSize, Field(ge=512, le=2**26, multiple_of=512)], 65536)
    assert found.pop("pattern").endswith("Mi)$")
    assert found == {
        "x-kubernetes-int-or-string": True,
        "minimum": 512,
        "maximum": 2**26,
        "multipleOf": 512,
        "maxLength": 32,
        "default": "64Ki",
    }


def test_a_size_in_any_form_is_bounded_by_rules() -> None:
    found = field(Annotated[Size, Field(ge=2**10, le=2**50)])
    bounds, whole = found["x-kubernetes-validations"]
    assert bounds["message"] == "must be from 1Ki to 1Pi"
    assert "self >= 1024 && self <= 1125899906842624" in bounds["rule"]
    assert "quantity('1Ki')" in bounds["rule"]
    assert whole["message"] == "must be a whole number of bytes"
    assert not {"minimum", "maximum"} & found.keys()


def test_long_texts_are_folded_within_the_width_and_short_lists_stay_on_one_line() -> None:
    module = importlib.import_module("definitions.yaml_text")
    document = {
        "description": "word: " * 60 + "end.",
        "rule": "self.access == 'PVC'",
        "rules": [{"rule": "!has(self.a) || self.b == 'c'", "message": "must " + "be " * 60 + "so"}],
        "short": ["True", "4Ki", "a: b"],
        "long": ["a-long-name-of-something"] * 9,
        "empty": [],
        "default": {},
        "pattern": r"^[-._a-z]\d: #$",
    }
    text = module.written(document)
    assert yaml.safe_load(text) == document
    assert max(map(len, text.splitlines())) <= module.WIDTH
    assert "description: >-\n  word:" in text
    assert "short: ['True', 4Ki, 'a: b']\n" in text
    assert "long:\n  - a-long" in text
    assert "rules:\n  - rule: \"!has(self.a) || self.b == 'c'\"\n    message: >-\n      must be" in text
