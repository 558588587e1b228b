"""What a variant changes, in words of the format."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import FieldChange, changes_between, spec_changes, variant_changes
from support.specs import RUN, suite_document

POOL = {"storage": {"rook": {"pool": {"replicated": {"size": 3}, "failureDomain": "osd"}}}}


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(one.path, one.before, one.after) for one in spec_changes(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        (RUN, RUN, []),
        ({"repetitions": 5}, {"repetitions": 3}, [("repetitions", 5, 3)]),
        ({}, {"repetitions": 3}, [("repetitions", None, 3)]),
        ({"repetitions": 5}, {}, [("repetitions", 5, None)]),
        ({"prepare": {}}, {"prepare": {"discard": False}}, [("prepare.discard", None, False)]),
        ({"prepare": {"discard": False}}, {"prepare": {}}, [("prepare.discard", False, None)]),
        (
            {"workloads": [{"name": "a", "fio": {}}, {"name": "b", "fio": {"ioDepth": [1]}}]},
            {"workloads": [{"name": "a", "fio": {}}, {"name": "b", "fio": {"ioDepth": [1, 16]}}]},
            [("workloads.b.fio.ioDepth", [1], [1, 16])],
        ),
        (
            {"workloads": [{"name": "a", "fio": {}}]},
            {"workloads": [{"name": "a", "dd": {"blockSize": ["4Ki"]}}, {"name": "b", "dd": {}}]},
            [
                ("workloads.a.fio", {}, None),
                ("workloads.a.dd.blockSize", None, ["4Ki"]),
                ("workloads.b.dd", None, {}),
            ],
        ),
        ({"workloads": [3]}, {"workloads": [4]}, [("workloads", [3], [4])]),
    ],
)
def test_differences(before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, Any, Any]]) -> None:
    assert changes(before, after) == expected


@given(st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xy"), st.integers(0, 2)), max_size=3))
def test_differences_lead_from_one_to_the_other(after: dict[str, Any]) -> None:
    before = {"a": {"x": 0}, "b": {"y": 1}}
    there, back = changes(before, after), changes(after, before)
    assert sorted(path for path, _, _ in there) == sorted(path for path, _, _ in back)
    assert all(old != new and (path, new, old) in back for path, old, new in there)


def test_changes_of_variants_include_what_a_union_removes() -> None:
    coded = {"storage": {"rook": {"pool": {"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}}}}
    variants = [{"name": "plain"}, {"name": "coded", "set": coded}]
    assert variant_changes(decode_suite(suite_document(run=POOL, variants=variants)).spec) == {
        "plain": (),
        "coded": (
            FieldChange(path="storage.rook.pool.replicated.size", before=3, after=None),
            FieldChange(path="storage.rook.pool.erasureCoded.dataChunks", before=None, after=4),
            FieldChange(path="storage.rook.pool.erasureCoded.codingChunks", before=None, after=2),
        ),
    }


def test_value_that_is_set_again_is_no_change() -> None:
    variants = [{"name": "same", "set": {"repetitions": RUN["repetitions"]}}]
    assert variant_changes(decode_suite(suite_document(variants=variants)).spec) == {"same": ()}


def test_changes_between_variants() -> None:
    spec = decode_suite(suite_document()).spec
    path = "workloads.reads.fio.blockSize"
    assert changes_between(spec, "small", "large") == (FieldChange(path=path, before=["4Ki"], after=["64Ki"]),)
    assert changes_between(spec, "large", "small") == (FieldChange(path=path, before=["64Ki"], after=["4Ki"]),)
    assert changes_between(spec, "large", "large") == ()
