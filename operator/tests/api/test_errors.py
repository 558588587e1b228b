from typing import Annotated, Literal

import pytest
from pydantic import Field, JsonValue, ValidationError, model_validator

from plimsoll.api.errors import Problem, SpecError, field_path, problems_of, shown
from plimsoll.api.model import Flag, Integer, Model


class Inner(Model):
    first_part: Annotated[Integer, Field(gt=1, lt=9)] = 2
    choice: Literal["a", "b", "c"] = "a"

    @model_validator(mode="before")
    @classmethod
    def _check(cls, document: JsonValue) -> JsonValue:
        if document == {"choice": "none"}:
            problems = [Problem(field="choice", value="none", remedy="x"), Problem(field="[1]", remedy="y")]
            raise SpecError([*problems, Problem(field="", remedy="z")])
        return document


class Outer(Model):
    inner: tuple[Inner, ...] = ()
    flag: Flag = False
    code: Annotated[str, Field(pattern="^x+$", min_length=2)] = "xx"
    share: float = 0.5
    entries: Annotated[dict[str, int], Field(max_length=1)] = Field(default_factory=dict)


def problems(document: JsonValue) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(document)
    return [str(problem) for problem in problems_of(caught.value, prefix=["spec", "parts", 3])]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"inner": [{}, {"firstPart": 1}]}, "inner[1].firstPart: 1 must be more than 1"),
        ({"inner": [{"firstPart": 9}]}, "inner[0].firstPart: 9 must be less than 9"),
        ({"inner": [{"choice": "d"}]}, 'inner[0].choice: "d" must be a, b or c'),
        ({"code": "xy"}, 'code: "xy" must match the pattern ^x+$'),
        ({"code": "x"}, 'code: "x" must have at least 2 characters'),
        ({"share": "half"}, 'share: "half" must be a number'),
        ({"share": []}, "share: must be a number, not a list"),
        ({"entries": {"a": 1, "b": 2}}, "entries: must have at most 1 entry"),
    ],
)
def test_problem_names_field_value_and_remedy(document: JsonValue, expected: str) -> None:
    assert problems(document) == [f"spec.parts[3].{expected}"]


def test_a_validator_may_name_fields_of_its_model() -> None:
    assert problems({"inner": [{"choice": "none"}]}) == [
        "spec.parts[3].inner[0].choice: none x",
        "spec.parts[3].inner[0][1]: y",
        "spec.parts[3].inner[0]: z",
    ]


def test_more_errors_than_anybody_reads_are_only_counted() -> None:
    class Empty(Model):
        pass

    for number, lines in ((1000, 1000), (1001, 1)):
        with pytest.raises(ValidationError) as caught:
            Empty.model_validate({str(name): 0 for name in range(number)})
        assert len(found := problems_of(caught.value, prefix=["spec"])) == lines
    assert str(found[0]) == "spec: has 1001 errors, too many to list; is it the right document?"


def test_unforeseen_error_keeps_the_librarys_words() -> None:
    class Url(Model):
        value: Annotated[bytes, Field(max_length=1)]

    with pytest.raises(ValidationError) as caught:
        Url.model_validate({"value": b"abc"})
    (problem,) = problems_of(caught.value)
    assert problem.remedy == "data should have at most 1 byte"


@pytest.mark.parametrize(
    ("location", "path"),
    [((), ""), (("a",), "a"), (("a", "b"), "a.b"), (("a", 0, "b"), "a[0].b"), (("a", 0, 1), "a[0][1]")],
)
def test_paths_are_written_as_kubectl_does(location: tuple[int | str, ...], path: str) -> None:
    assert field_path(location) == path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ([1], ""),
        ({"a": 1}, ""),
        (True, "true"),
        (1.5, "1.5"),
        ("a", '"a"'),
        ("µs", '"µs"'),
        ("two\nlines", '"two\\nlines"'),
        ("\x1b[2J", '"\\u001b[2J"'),
        ("\x9b2J\u202egnp.exe", '"?2J?gnp.exe"'),
    ],
)
def test_values_are_shown_as_they_are_written(value: object, text: str) -> None:
    assert shown(value) == text


def test_the_path_of_a_field_whose_name_a_stranger_chose_is_printable_and_bounded() -> None:
    assert field_path(["spec", "\x1b[2J\n", 0]) == "spec.?[2J?[0]"
    assert len(field_path(["spec", "x" * 100_000])) < 400


def test_shown_value_is_bounded() -> None:
    assert len(shown("x" * 1000)) == 80
    assert shown("x" * 1000).endswith("…")
