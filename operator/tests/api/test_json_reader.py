import json

import pytest

from plimsoll.api.json_reader import MAX_COUNT, JsonNode, OutputError


def test_values_and_their_paths() -> None:
    node = JsonNode.parse('{"a": [{"n": 3, "f": 0.5, "on": true, "s": "x\\u001b", "new": 1}], "none": null}')
    (entry,) = node["a"].elements()
    assert (entry["n"].count(), entry["f"].number(), entry["on"].flag()) == (3, 0.5, True)
    assert (entry["s"].text(), entry["s"].line()) == ("x\x1b", "x?")
    assert entry["n"].path == "a[0].n"
    assert (node.get("none"), node.get("absent"), "none" in node, "absent" in node) == (None, None, True, False)
    assert [name for name, _ in node.items()] == ["a", "none"]


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", None, 2**63, [], {}])
def test_only_whole_numbers_are_counts(value: object) -> None:
    with pytest.raises(OutputError, match=rf"^a\.n is not a whole number from 0 to {MAX_COUNT}: "):
        JsonNode({"n": value}, "a")["n"].count()


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-1", "-0.5", "true", '"1"', "null", "1e999", "1" + "0" * 400])
def test_only_finite_numbers_are_numbers(text: str) -> None:
    with pytest.raises(OutputError, match=r"^a\.n is not a number"):
        JsonNode({"n": json.loads(text)}, "a")["n"].number()


def test_integers_may_be_negative() -> None:
    assert JsonNode(-5).integer() == -5
    for value in (-(2**63), 1.0, True, "1"):
        with pytest.raises(OutputError, match="the document is not a whole number"):
            JsonNode(value).integer()


def test_bounds_are_named() -> None:
    with pytest.raises(OutputError, match=r"^n is not a whole number from 0 to 7: 8$"):
        JsonNode(8, "n").count(at_most=7)
    with pytest.raises(OutputError, match=r"^n is not a number from 0 to 7: 7\.5$"):
        JsonNode(7.5, "n").number(at_most=7)


@pytest.mark.parametrize("text", ["3", "0.5", "-1", "1e3"])
def test_numbers_in_strings_are_unquoted_only_on_request(text: str) -> None:
    assert JsonNode(text).unquoted() == JsonNode(json.loads(text))
    with pytest.raises(OutputError, match="is not a number"):
        JsonNode(text).number()


@pytest.mark.parametrize("value", ["x", "", "[3]", '"3"', "9" * 5000, 3, None])
def test_anything_else_is_not_unquoted(value: object) -> None:
    assert JsonNode(value).unquoted() == JsonNode(value)


def test_missing_fields_and_other_types_are_named_with_their_document() -> None:
    node = JsonNode.parse('{"jobs": [{"read": {}, "on": 1}]}', document="the answer")
    read = node["jobs"].elements()[0]["read"]
    for action, message in (
        (lambda: read["lat_ns"], r"^the answer: jobs\[0\]\.read\.lat_ns is missing$"),
        (read.elements, r"^the answer: jobs\[0\]\.read is not a list$"),
        (read.text, r"^the answer: jobs\[0\]\.read is not a string: a list or an object$"),
        (node["jobs"].items().__next__, r"^the answer: jobs is not an object$"),
        (node["jobs"].elements()[0]["on"].flag, "on is not true or false: 1$"),
        (JsonNode([], document="the answer").items().__next__, "^the answer is not an object$"),
    ):
        with pytest.raises(OutputError, match=message):
            action()


def test_contradictions_are_errors_only_where_they_are_read() -> None:
    node = JsonNode.parse('{"a": 1, "b": 2, "a": 3, "a": 1, "c": 4, "c": 4}')
    assert (node["b"].count(), node["c"].count()) == (2, 4)
    for read in (lambda: node["a"], lambda: node.get("a"), lambda: dict(node.items())):
        with pytest.raises(OutputError, match=r"^a occurs twice with different values$"):
            read()


@pytest.mark.parametrize("text", ["", "{", "Error EACCES", "[" * 100_000, "9" * 5000, '{"a": 1} x'])
def test_text_that_is_not_json_is_refused_with_its_begin(text: str) -> None:
    with pytest.raises(OutputError, match=r"^the answer is not JSON: ") as error:
        JsonNode.parse(text, document="the answer")
    assert repr(text[:40]) in str(error.value)


@pytest.mark.parametrize("spelled", ["inf", "-inf", "nan", "-nan", "NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_know_are_refused_only_where_they_are_read(spelled: str) -> None:
    text = f'{{"a": [{spelled}, {{"b":{spelled}}}], "quoted \\" inf": "nan, -inf ", "n": 3}}'
    node = JsonNode.parse(text)
    assert (node["n"].count(), node['quoted " inf'].text()) == (3, "nan, -inf ")
    for value in (node["a"].elements()[0], node["a"].elements()[1]["b"]):
        with pytest.raises(OutputError, match=r"^a\[.* is not a number from 0"):
            value.number()
    assert node["a"].elements()[1].number_or_none("b") is None


@pytest.mark.parametrize("text", ["info", '{"a": in}', '{"a": nano}', '{"a": 1inf}', '{"a": --inf}', "{inf: 1}", '{"'])
def test_other_words_are_no_numbers(text: str) -> None:
    with pytest.raises(OutputError, match="is not JSON"):
        JsonNode.parse(text)


@pytest.mark.parametrize("number", [0, 2**63, 18446744073709551557, 2**64 - 1])
def test_identifiers_have_64_bits(number: int) -> None:
    assert JsonNode(number).identifier() == number
    with pytest.raises(OutputError, match="is not a whole number"):
        JsonNode(number + 2**64).identifier()


def test_a_document_that_is_printed_twice_is_read_once() -> None:
    text = '{"n": 3, "x": nan}'
    assert JsonNode.parse(f"{text}\n{text}\n {text}")["n"].count() == 3
    for more in (text.replace("3", "4"), "noise", "}", text[:-1]):
        with pytest.raises(OutputError, match="is not JSON"):
            JsonNode.parse(f"{text}\n{more}")


def test_optional_fields_may_be_anything() -> None:
    node = JsonNode.parse('{"a": {"b": 2}, "c": "x", "d": 1, "d": 2, "e": [1]}')
    assert node.number_or_none("a", "b") == 2
    for path in (("a",), ("a", "x"), ("c", "b"), ("d",), ("e", "b"), ("missing", "b")):
        assert node.number_or_none(*path) is None
    assert [node.value_or_none(name) for name in ("c", "d", "e", "missing")] == ["x", None, [1], None]
