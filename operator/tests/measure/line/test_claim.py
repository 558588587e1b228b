import random
from itertools import accumulate

import pytest

from plimsoll.measure.line.curve import NEEDED, claim_e_value


def test_six_trials_in_a_row_prove_a_claim_and_one_other_outcome_needs_four_more() -> None:
    assert claim_e_value([True] * 5) < NEEDED <= claim_e_value([True] * 6)
    assert claim_e_value([False, *[True] * 9]) < NEEDED <= claim_e_value([False, *[True] * 10])


def test_no_trials_prove_nothing() -> None:
    assert claim_e_value([]) == 1


@pytest.mark.parametrize("share", [0.5, 0.4])
def test_a_wrong_claim_is_rarely_proven_whenever_the_search_looks(share: float) -> None:
    chance = random.Random(3)  # noqa: S311 - numbers, not secrets
    proven = 0
    for _ in range(4000):
        factors = [claim_e_value([chance.random() < share]) for _ in range(40)]
        proven += max(accumulate(factors, lambda stake, factor: stake * factor)) >= NEEDED
    assert proven / 4000 <= 0.025
