"""Whether a line is where trials ended on both sides of it; elsewhere it is only what was assumed before the search."""

from collections.abc import Iterable

from plimsoll.api.line import Line
from plimsoll.api.result import Trial
from plimsoll.measure.line.probe import tried_loads


def unproven_side(line: Line, trials: Iterable[Trial]) -> str:
    """Return what no trial that counts shows of a line, in words; empty if both sides of an estimate are shown.

    A bound needs a trial that ended on its side. A result of several runs has no loads: each run was checked by itself.
    """
    probes = tried_loads(trials)
    met = [one.load for one in probes if one.counts and not one.is_broken]
    broken = [one.load for one in probes if one.counts and one.is_broken]
    if not probes:
        return ""
    if line.estimate:
        met = [load for load in met if load <= line.estimate]
        broken = [load for load in broken if load >= line.estimate]
    where = " at or {} it" if line.estimate else ""
    if not met and (line.estimate or line.low):
        return f"no load{where.format('below')} met the objectives"
    if not broken and (line.estimate or line.high):
        return f"no load{where.format('above')} broke"
    return ""
