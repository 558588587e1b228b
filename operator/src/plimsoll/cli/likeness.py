"""Whether the points of two runs may be compared, and in what they differ, over all points together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.matching import Pair
from plimsoll.plan.fingerprint import Difference, differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """What two runs have in common.

    Attributes:
        differences: each once, with the points that have it; the identity first.
        unknown: points of which a side was recorded without a fingerprint.

    """

    differences: Sequence[tuple[Difference, Sequence[str]]]
    unknown: Sequence[str]

    @property
    def is_given(self) -> bool:
        """Whether all points are known to have been asked for the same of the same."""
        return not self.unknown and all(difference.part != "identity" for difference, _ in self.differences)


def likeness_of(pairs: Iterable[Pair]) -> Likeness:
    """Compare the fingerprints of every pair."""
    found: list[tuple[Difference, list[str]]] = []
    unknown = []
    for pair in pairs:
        ours, theirs = pair.baseline.status.fingerprint, pair.candidate.status.fingerprint
        if ours is None or theirs is None:
            unknown.append(pair.baseline.spec.point)
            continue
        for difference in differences(ours, theirs):
            _add(found, difference, pair.baseline.spec.point)
    found.sort(key=lambda case: case[0].part != "identity")
    return Likeness(differences=found, unknown=unknown)


def _add(found: list[tuple[Difference, list[str]]], difference: Difference, point: str) -> None:
    """Note that a point has a difference. JSON values cannot be keys, so it is looked for."""
    for known, points in found:
        if known == difference:
            points.append(point)
            return
    found.append((difference, [point]))
