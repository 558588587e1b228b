import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.tools.base import OutputError
from plimsoll.tools.fio.document import read_document
from plimsoll.tools.reading import JsonObject


def test_text_around_the_document_is_kept() -> None:
    found = read_document('\nfio: terminating on signal 15\n{\n "a": 1\n}\nbye\n')
    assert found.root.count("a") == 1
    assert found.noise == ("fio: terminating on signal 15", "bye")
    assert found.warnings == ()


def test_last_complete_document_wins() -> None:
    found = read_document('{\n "a": 1\n}\n{\n "a": 2\n}\n{\n "a": ')
    assert found.root.count("a") == 2
    assert any("line 8" in warning for warning in found.warnings)
    assert any("2 documents" in warning for warning in found.warnings)


def test_duplicate_keys_are_reported() -> None:
    found = read_document('{"a": {"b": 1, "b": 2}, "c": 1, "c": 1}')
    assert found.warnings == ("fields that occur twice in one object, of which the last was taken: b, c",)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "it is empty"),
        ("fio: command not found\n", "command not found"),
        ('{\n "a" : 1,\n "b" : ', "line 3, column 8"),
        ('{"a": ' * 100_000, "RecursionError"),
        ('{"a": ' + "9" * 10_000 + "}", "line 1"),
    ],
)
def test_broken_text_is_an_error_that_says_where(text: str, where: str) -> None:
    with pytest.raises(OutputError, match=where):
        read_document(text)


@pytest.mark.parametrize("line", ["{\n", '{"a":\n', "x" * 99 + "\n", "[" * 99 + "\n", "x"])
def test_ten_megabytes_of_garbage_end_quickly(line: str) -> None:
    text = line * (10 * 2**20 // len(line))
    began = time.process_time()
    with pytest.raises(OutputError):
        read_document(text)
    assert time.process_time() - began < 20


@given(st.text())
def test_any_text_is_a_document_or_an_output_error(text: str) -> None:
    try:
        read_document(text)
    except OutputError:
        return


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", None, 2**63, [], {}])
def test_only_whole_numbers_are_counts(value: object) -> None:
    with pytest.raises(OutputError, match=r"^a\.n is not a whole number"):
        JsonObject(path="a", fields={"n": value}).count("n")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-1", "-0.5", "true", '"1"', "null", "1e999", "1" + "0" * 400])
def test_only_finite_numbers_are_numbers(text: str) -> None:
    with pytest.raises(OutputError, match=r"^a\.n is not a number"):
        JsonObject(path="a", fields={"n": json.loads(text)}).number("n")


def test_missing_field_is_named_by_its_whole_path() -> None:
    with pytest.raises(OutputError, match=r"^jobs\[0\]\.read\.lat_ns is missing$"):
        read_document('{"jobs": [{"read": {}}]}').root.children("jobs")[0].child("read").child("lat_ns")


def test_text_that_cannot_be_printed_is_replaced() -> None:
    assert read_document(r'{"a": "x\ud800\u001b"}').root.text("a") == "x??"
