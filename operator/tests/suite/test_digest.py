"""The digest changes with what is measured, and with nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import suite_digest
from support.specs import RUN, VARIANTS, suite_document

COMPARISON = {"name": "costs", "baseline": {"variant": "small"}, "candidate": {"variant": "large"}}


def digest(**spec: Any) -> str:
    return suite_digest(decode_suite(suite_document(**spec)).spec)


def shuffled(value: Any, random: Any) -> Any:
    """Return a document with the keys of its mappings in another order."""
    if isinstance(value, list):
        return [shuffled(part, random) for part in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    random.shuffle(keys)
    return {key: shuffled(value[key], random) for key in keys}


@given(st.randoms(use_true_random=False))
def test_order_of_keys_does_not_matter(random: Any) -> None:
    document = shuffled(suite_document(), random)
    assert suite_digest(decode_suite(json.loads(json.dumps(document))).spec) == digest()


@pytest.mark.parametrize(
    "spec",
    [
        {"repeat": 4},
        {"run": RUN | {"repetitions": 4}},
        {"variants": VARIANTS[:1]},
        {"variants": [VARIANTS[0], VARIANTS[1] | {"name": "larger"}]},
        {"variants": [VARIANTS[0], VARIANTS[1] | {"set": {"repetitions": 4}}]},
    ],
)
def test_what_is_measured_matters(spec: dict[str, Any]) -> None:
    assert digest(**spec) != digest()


def test_what_the_results_show_does_not_matter() -> None:
    assert digest(comparisons=[COMPARISON]) == digest()


def test_written_defaults_do_not_matter() -> None:
    assert digest(repeat=3, variants=[{"name": "small"}, VARIANTS[1]]) == digest()


def test_digest_is_the_same_in_every_version() -> None:
    """A round belongs to a digest: another one for the same suite would start a new round."""
    assert digest() == "17bf1f1d204b8509711141857b9de329e714b28b45bc0500b73ec982184c0d53"
