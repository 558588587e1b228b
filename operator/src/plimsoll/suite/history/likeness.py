"""Whether two rounds of a suite were measured under the same conditions.

A new version of Ceph is what rounds are compared for, so it is named and does not prevent a conclusion. Any difference
in the identity of a result does, and so do other nodes: what changed then is not only the storage.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.measure.wording import first_few
from plimsoll.plan.fingerprint import Difference, differences
from plimsoll.suite.history.rounds import Condition, MeasuredRound

_NAMED = ("ceph.", "kubernetes", "kernel", "plimsoll", "rook.")
"""Beginnings of keys of the context that are named if they differ; all others may differ from round to round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed between two rounds.

    Attributes:
        named: such as a new version of Ceph; no obstacle.
        obstacles: sentences that say what makes the rounds incomparable.

    """

    named: Sequence[Difference] = ()
    obstacles: Sequence[str] = ()


def changes_since(earlier: MeasuredRound, judged: MeasuredRound) -> Changes:
    """Return what changed from one round to another of the same digest."""
    before = {(one.variant, one.point): one for one in earlier.conditions}
    pairs = [(before[one.variant, one.point], one) for one in judged.conditions if (one.variant, one.point) in before]
    found = _distinct(pairs)
    return Changes(
        named=[one for one in found if one.part == "context" and one.key.startswith(_NAMED)],
        obstacles=[
            *(_differs(one) for one in found if one.part == "identity"),
            *_unknown([theirs.point for ours, theirs in pairs if not (ours.fingerprint and theirs.fingerprint)]),
            *_other_nodes(pairs),
        ],
    )


_Pairs = Sequence[tuple[Condition, Condition]]


def _distinct(pairs: _Pairs) -> list[Difference]:
    found: list[Difference] = []
    for ours, theirs in pairs:
        if ours.fingerprint and theirs.fingerprint:
            found += [one for one in differences(ours.fingerprint, theirs.fingerprint) if one not in found]
    return found


def _differs(difference: Difference) -> str:
    change = f"{difference.baseline} -> {difference.candidate}"
    return f"{difference.key} differs from the accepted rounds ({change}); restore it, or accept this round"


def _unknown(points: Sequence[str]) -> Iterator[str]:
    if points:
        yield f"without fingerprints, nothing shows that conditions are the same: {first_few([*dict.fromkeys(points)])}"


def _other_nodes(pairs: _Pairs) -> Iterator[str]:
    differing = [(ours.nodes, theirs.nodes) for ours, theirs in pairs if ours.nodes != theirs.nodes]
    if differing:
        before, after = (first_few(sorted(nodes)) or "unknown" for nodes in differing[0])
        yield f"clients ran on other nodes ({before} -> {after}); select the same nodes, or accept this round"
