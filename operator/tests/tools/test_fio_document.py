import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.tools.fio.document import read_document


def test_text_around_the_document_is_kept() -> None:
    root, noise = read_document('\nfio: terminating on signal 15\n{\n "a": 1\n}\nbye\n')
    assert root["a"].count() == 1
    assert noise == ["fio: terminating on signal 15", "bye"]


def test_last_document_is_read() -> None:
    text = 'before\n{\n "a": 1\n}\n{\n "a": 2\n}\n'
    root, noise = read_document(text)
    assert root["a"].count() == 2
    assert noise == ["before", "2 documents in the output; the last one was taken"]
    with pytest.raises(OutputError, match="breaks off at line 9"):
        read_document(f'{text}{{\n "a": ')


def test_fields_that_contradict_each_other_are_refused_where_they_are_read() -> None:
    root, _ = read_document('{"a": {"b": 1, "b": 2}, "c": 1}')
    assert root["c"].count() == 1
    with pytest.raises(OutputError, match=r"^a\.b occurs twice with different values$"):
        root["a"]["b"].count()


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


def test_text_that_cannot_be_printed_is_replaced() -> None:
    root, _ = read_document(r'{"a": "x\ud800\u001b"}')
    assert root["a"].line() == "x??"
