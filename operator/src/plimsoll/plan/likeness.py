"""Whether the points of two runs are comparable, and their differences over all points."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.values import Pair
from plimsoll.plan.fingerprint import Difference, differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """The differences of two runs.

    Attributes:
        differences: each with the points that have it; identities first.
        unknown: points without a fingerprint on one side.

    """

    differences: Sequence[tuple[Difference, Sequence[str]]]
    unknown: Sequence[str]

    @property
    def is_same(self) -> bool:
        """Whether all points are known to have the same identity."""
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
    """Add a point to a difference. JSON values cannot be keys of a dictionary."""
    for known, points in found:
        if known == difference:
            points.append(point)
            return
    found.append((difference, [point]))
