"""Whether the OSDs that were measured one after the other are alike."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from statistics import median

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.checking import cluster_checks as checks
from plimsoll.measure.checking.check import Observation, evaluate
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.osds import OsdSpeed, speeds_of
from plimsoll.measure.wording import number_text, quote

_PERCENT = 100
_NAMED = 6


def judge_osds(evidence: Evidence) -> tuple[Finding, ...]:
    """Compare each OSD with the median of its device class; of unknown classes, with all that are unknown."""
    speeds = speeds_of(item.measurement for item in evidence.measured)
    return evaluate(checks.OSD_OUTLIER, _outliers(speeds, evidence.facts.osd_classes))


def _outliers(speeds: Collection[OsdSpeed], classes: Mapping[int, str]) -> Iterator[Observation]:
    by_class = defaultdict[str, list[OsdSpeed]](list)
    for speed in speeds:
        by_class[classes.get(speed.osd, "")].append(speed)
    medians = {name: median(speed.bytes_per_second for speed in known) for name, known in by_class.items()}
    parts = [
        (_PERCENT * speed.bytes_per_second / medians[name], speed.osd, name)
        for name, known in by_class.items()
        for speed in known
        if medians[name]
    ]
    slow = sorted(part for part in parts if part[0] < checks.OSD_OUTLIER.limit(Verdict.SUSPECT))
    if slow:
        named = [f"osd.{osd} with {part:.3g} % of the median of {_of(name)}" for part, osd, name in slow[:_NAMED]]
        rest = f", and {number_text(len(slow) - _NAMED)} more" if len(slow) > _NAMED else ""
        yield Observation(value=slow[0][0], detail=f"slow OSDs: {', '.join(named)}{rest}")


def _of(name: str) -> str:
    return f"class {quote(name, 40)}" if name else "all"
