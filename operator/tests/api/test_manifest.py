import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.errors import SpecError
from plimsoll.api.manifest import MAX_TEXT_BYTES, read_manifest

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def refusal(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        read_manifest(text)
    (problem,) = caught.value.problems
    assert problem.field == ""
    assert "\n" not in problem.remedy
    return problem.remedy


@given(VALUES)
def test_json_is_read_as_it_is(value: object) -> None:
    assert read_manifest(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 4096", 4096),
        ("a: -1", -1),
        ("a: 0.5", 0.5),
        ("a: 4Ki", "4Ki"),
        ("a: on", True),
        ("a: no", False),
        ("a: 'on'", "on"),
        ("a: ~", None),
        ("a:", None),
        ("a: 1e3", "1e3"),
        ("a: 2026-01-01", "2026-01-01"),
        ("a: 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("a: '010'", "010"),
        ("a: !!str 1", "1"),
        ("a: {}", {}),
        ("---\na: 1\n", 1),
        ("a: 1\n---\n", 1),
        ("# remark\n---\na: 1\n...\n", 1),
        ("\ufeffa: 1", 1),
    ],
)
def test_yaml_means_what_it_seems_to_mean(text: str, value: object) -> None:
    assert read_manifest(text) == {"a": value}


@pytest.mark.parametrize("text", ["", "\n", "# only a remark\n", "---\n", "---\n---\n", "null"])
def test_nothing_is_none(text: str) -> None:
    assert read_manifest(text) is None


@pytest.mark.parametrize(
    "number", ["010", "0x10", "0b1", "1_000", "12:30", "1" * 20, "-010", "1:30.5", ".inf", "-.INF", ".nan"]
)
def test_number_that_yaml_would_reinterpret_is_refused(number: str) -> None:
    assert refusal(f"b: 1\na: {number}") == (
        f"line 2, column 4: {number} is not a plain decimal number; write it as one, or put it in quotes if it is text"
    )


def test_duplicate_key_is_refused() -> None:
    assert refusal("a:\n  b: 1\n  c: 2\n  b: 3\n") == ("line 4, column 3: key b is duplicate; remove one")
    assert "key b is duplicate" in refusal('{"a": {"b": 1, "b": 1}}')


@pytest.mark.parametrize("key", ["1", "on", "1.5", "~"])
def test_key_that_is_not_text_is_refused(key: str) -> None:
    assert refusal(f"a: 1\n{key}: 2") == f"line 2, column 1: key {key} is not text; put it in quotes"


def test_key_that_is_a_list_is_refused() -> None:
    assert refusal("? [1, 2]\n: 3") == "line 1, column 3: a key is not text; put it in quotes"


def test_aliases_and_merge_keys_are_resolved() -> None:
    text = "base: &base {x: 1, y: 2}\nfirst: {<<: *base, y: 3}\nagain: *base"
    assert read_manifest(text) == {
        "base": {"x": 1, "y": 2},
        "first": {"x": 1, "y": 3},
        "again": {"x": 1, "y": 2},
    }


def test_merged_mapping_may_be_merged_before_it_is_constructed() -> None:
    text = "a:\n  deep: {c: &two {<<: &one {x: 1}, x: 2}}\nb: {<<: *two, z: 3}"
    assert read_manifest(text) == {"a": {"deep": {"c": {"x": 2}}}, "b": {"x": 2, "z": 3}}


@pytest.mark.parametrize("tag", ["!!binary", "!!set", "!!python/object:os.system", "!mine", "!!bool", "!!timestamp"])
def test_tags_are_refused(tag: str) -> None:
    remedy = refusal(f"a: {tag} x")
    assert remedy.startswith("line 1, column 4: tag ")
    assert remedy.endswith("is not supported; remove it")


def test_several_documents_are_refused() -> None:
    assert refusal("a: 1\n---\nb: 2\n") == (
        "line 3, column 1: is a second document; write each document to its own file"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b: c", "line 1, column 5: is not YAML: mapping values are not allowed here"),
        ("a: [1, 2", "is not YAML: expected ',' or ']'"),
        ("a:\n\tb: 1", "line 2, column 1: is not YAML: found character '\\t'"),
        ("a: *b", "line 1, column 4: is not YAML: found undefined alias 'b'"),
        ("a: \0", "is not YAML: unacceptable character #x0000"),
        ("a: 'b", "is not YAML: found unexpected end of stream"),
        ("a: @b", "line 1, column 4: is not YAML: found character '@'"),
    ],
)
def test_syntax_error_names_its_place(text: str, words: str) -> None:
    assert words in refusal(text)


def test_size_is_bounded() -> None:
    assert refusal("a: " + "x" * MAX_TEXT_BYTES) == "is larger than 256 KiB; is it the right file?"


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 10_000])
def test_endless_nesting_is_refused(text: str) -> None:
    assert refusal(text) == "is nested too deeply; is it the right file?"


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(SpecError):
        read_manifest(text)


def test_half_a_character_is_refused() -> None:
    assert refusal('a: "\\ud800"') == "line 1, column 4: has an unpaired surrogate; remove it"
