"""Whether the line is beyond the highest or the lowest load: a test of the trials at that load.

The posterior alone claims too much there, because most of its prior is beyond the load: after two trials that held, the
line is rarely just below. The claim therefore needs a sequential test that holds wherever the line is. Source: Ville's
inequality; a bettor who doubles or loses at even odds multiplies his stake by 40 in at most 1 of 40 games.
"""

import math
from collections.abc import Iterable

_CLAIMED = 0.93
"""The share of trials that are as claimed, on which is bet: six in a row prove the claim, or ten of eleven."""

NEEDED = 40.0
"""The reciprocal of 2.5 %."""


def claim_evidence(as_claimed: Iterable[bool]) -> float:
    """Return by how much the trials at one load multiply a stake on the claim that most of them are as claimed.

    If at most half of all trials are, it ever reaches `NEEDED` in at most 2.5 % of searches, however long they go on.
    """
    return math.prod(2 * _CLAIMED if one else 2 * (1 - _CLAIMED) for one in as_claimed)
