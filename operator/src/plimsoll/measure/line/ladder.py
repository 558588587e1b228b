"""The first loads of a search: doubled until the objectives break, or halved until they hold.

The climb ends only when two successive rungs broke: a single trial may break by chance, or at a load that the storage
handles worse than a higher one. If all loads from the start down to the lowest broke, a higher one is tried too.
"""

from collections.abc import Iterator, Mapping

from plimsoll.measure.line.settings import Settings

_IN_A_ROW = 2


def next_rung(broken: Mapping[float, bool], settings: Settings) -> float | None:
    """Return the load to try next, or None if the line is bracketed as far as the limits permit.

    Args:
        broken: load -> whether its first trial broke; False if the load yields too few operations to know that, because
            higher loads yield more.
        settings: of the search.

    """
    foot = _foot(broken, settings)
    start, in_a_row = settings.offered(settings.start), 0
    for rung in _ascent(foot, settings):
        if rung not in broken:
            return rung
        in_a_row = in_a_row + 1 if broken[rung] else 0
        if in_a_row >= _IN_A_ROW and (rung > start or not broken[foot]):
            break
    return None


def _foot(broken: Mapping[float, bool], settings: Settings) -> float:
    """Return the highest rung of the descent that is not known to break, or the lowest load."""
    return next((rung for rung in _descent(settings) if not broken.get(rung, False)), settings.lowest)


def _descent(settings: Settings) -> Iterator[float]:
    """Yield the start, and halves of it down to the lowest load."""
    rung = settings.offered(settings.start)
    yield rung
    while rung > settings.lowest:
        rung = settings.offered(rung / 2)
        yield rung


def _ascent(foot: float, settings: Settings) -> Iterator[float]:
    """Yield the rungs from the foot up to the highest load: those of the descent, then doubles of the start."""
    yield from reversed([rung for rung in _descent(settings) if rung >= foot])
    rung = settings.offered(settings.start)
    while rung < settings.highest:
        rung = settings.offered(2 * rung)
        yield rung
