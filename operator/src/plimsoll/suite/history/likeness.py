"""Whether a round was measured under the conditions of the rounds before it, and what changed.

A new version of Ceph is what rounds are compared for, so it is named and does not prevent a conclusion. Any difference
in the identity of a result does, and so do other nodes: what changed then is not only the storage.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.measure.checks.check import first_few
from plimsoll.plan.fingerprint import Difference, differences
from plimsoll.suite.history.rounds import Condition, MeasuredRound

_NAMED = ("ceph.", "kubernetes", "kernel", "plimsoll", "rook.", "volume", "cpu", "processors", "memoryBytes")
"""Beginnings of keys of the context that are named if they differ; all others may differ from round to round."""

_NODES = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed from earlier rounds to a later one.

    Attributes:
        named: such as a new version of Ceph; no obstacle.
        obstacles: sentences that say what makes the rounds incomparable.

    """

    named: Sequence[Difference] = ()
    obstacles: Sequence[str] = ()


def changes_since(earlier: Sequence[MeasuredRound], judged: MeasuredRound) -> Changes:
    """Return what changed since earlier rounds of the same digest, in their order.

    Each point is compared with the last of these rounds that has numbers of it.
    """
    before = latest_conditions(earlier)
    pairs = [(before[one.variant, one.point], one) for one in judged.conditions if (one.variant, one.point) in before]
    found: list[Difference] = []
    for pair in pairs:
        found += [one for one in differences_between(*pair) if one not in found]
    return Changes(
        named=[one for one in found if one.part == "context" and one.key != _NODES],
        obstacles=[
            *(_differs(one) for one in found if one.part == "identity"),
            *_unknown([theirs.point for ours, theirs in pairs if not (ours.fingerprint and theirs.fingerprint)]),
            *(_other_nodes(one) for one in found if one.key == _NODES),
        ],
    )


def latest_conditions(rounds: Sequence[MeasuredRound]) -> Mapping[tuple[str, str], Condition]:
    """Return the last known condition of each variant and point."""
    return {(one.variant, one.point): one for measured in rounds for one in measured.conditions}


def differences_between(before: Condition, after: Condition) -> list[Difference]:
    """Return what changed at a point: its identity, versions, the hardware, and nodes (`nodes`, lists of names).

    What already differs between the runs of one of the rounds is omitted, such as the name of a volume.
    """
    found: list[Difference] = []
    if before.fingerprint and after.fingerprint:
        found = [
            one
            for one in differences(before.fingerprint, after.fingerprint)
            if one.part == "identity"
            or (one.key.startswith(_NAMED) and one.key not in before.varying and one.key not in after.varying)
        ]
    if before.nodes != after.nodes:
        ours, theirs = _names(before), _names(after)
        found.append(Difference(part="context", key=_NODES, baseline=ours, candidate=theirs))
    return found


def _names(condition: Condition) -> JsonValue:
    return [*sorted(condition.nodes)]


def _differs(difference: Difference) -> str:
    change = f"{difference.baseline} -> {difference.candidate}"
    return f"{difference.key} differs from the accepted rounds ({change}); restore it, or accept this round"


def _unknown(points: Sequence[str]) -> Iterator[str]:
    if points:
        yield f"without fingerprints, nothing shows that conditions are the same: {first_few([*dict.fromkeys(points)])}"


def _other_nodes(difference: Difference) -> str:
    before, after = (_listed(names) for names in (difference.baseline, difference.candidate))
    return f"clients ran on other nodes ({before} -> {after}); select the same nodes, or accept this round"


def _listed(names: JsonValue) -> str:
    return first_few([str(name) for name in names]) or "unknown" if isinstance(names, list) else "unknown"
