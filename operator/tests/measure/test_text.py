"""Lists in sentences."""

from collections.abc import Sequence

import pytest

from plimsoll.measure.text import listed


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), ("abc", "a, b and c"), ("abcd", "a, b, c and 1 more")],
)
def test_the_first_few_are_listed(texts: Sequence[str], sentence: str) -> None:
    assert listed(texts, named=3) == sentence
