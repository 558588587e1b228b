"""Measures how well the line is found: `line.py [SEARCHES [TABLE ...]]`; tables of docs/explanation/line.md.

It simulates that many searches under each condition, from the measurements of trials on. Of 100, a share of 95 % has a
standard error of 2.2 %, and of 500 one of 1 %.
"""

import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from figures import heading_rows, percent
from plimsoll.api.line import MOST_STORM_PROBES, Ending, Line
from plimsoll.api.storage import OsdsAway
from plimsoll.measure.line.search import Settings
from support.simulated_storage import (
    HockeyStick,
    Storage,
    bimodal,
    cliff,
    drawn,
    drifting,
    linear,
    notched,
    search,
    sparse,
)

_SEARCHES = 100
_NOISES = (0.01, 0.02, 0.05)
_SETTINGS = Settings(start=500, limit=200_000)
_STORM = replace(_SETTINGS, storm=OsdsAway(count=1, action="Out"), most_probes=MOST_STORM_PROBES)
_STORM_NOISES = (0.01, 0.05)
_LEFT = (0.1, 1.0)
"""The storm line is drawn between these parts of the calm line, with an even logarithm."""
_LINES = (2_000, 60_000)
"""The line is drawn between them, with an even logarithm, so that a search starts two to seven doublings below it."""

_LINE = 7_000
_KNOWN_FROM = (0.05, 0.4, 0.85, 0.97, 1.7, 40)
"""From which part of the line on a percentile is known."""

_SHAPES: Mapping[str, Callable[..., Storage]] = {
    "queue, its latency scatters": lambda line, noise: HockeyStick(line, latency_noise=noise),
    "queue, its speed scatters": lambda line, noise: HockeyStick(line, speed_noise=noise),
    "cliff": cliff,
    "linear": linear,
}
_OTHERS: Mapping[str, Callable[[float], Storage]] = {
    "cliff without noise": lambda line: cliff(line, 0.0),
    "linear, noise 10 %": lambda line: linear(line, 0.1),
    "linear, noise 20 %": lambda line: linear(line, 0.2),
    "bimodal: 1 of 10 trials breaks": lambda line: bimodal(line, 0.05, slow=0.1),
    "bimodal: 3 of 10 trials break": lambda line: bimodal(line, 0.05, slow=0.3),
}
_ENDS = {
    "just below the limit": ((0.9 * 16_000, 16_000), Ending.NEVER_BROKE),
    "just above the limit": ((16_000, 1.1 * 16_000), None),
    "just above the floor": ((100, 1.1 * 100), Ending.BROKEN_AT_FIRST),
    "just below the floor": ((0.9 * 100, 100), None),
}
"""Lines within 10 % of an end of the loads, and the claim that would be wrong."""
_SHORT = replace(_SETTINGS, limit=16_000, floor=100)
_DOUBTFUL: Mapping[str, Callable[[float], Storage]] = {
    "steady, monotone": lambda line: linear(line, 0.05),
    "1 % slower after each probe": lambda line: drifting(line, 0.05, 0.01),
    "2 % slower after each probe": lambda line: drifting(line, 0.05, 0.02),
    "4 % slower after each probe": lambda line: drifting(line, 0.05, 0.04),
    "breaks from an eighth to a quarter of its line too": lambda line: notched(line, 0.05),
}


def main() -> None:
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else _SEARCHES
    names = sys.argv[2:] or [*_TABLES]
    if unknown := [name for name in names if name not in _TABLES]:
        sys.exit(f"no table {', '.join(unknown)}; there are {', '.join(_TABLES)}")
    for name in names:
        print(f"\n{name}, of {searches} searches each\n")
        for row in _TABLES[name](searches):
            print(f"| {' | '.join(row)} |", flush=True)


def _coverage(searches: int) -> Iterator[Sequence[str]]:
    """Yield how often the interval contains the line, and how many probes it takes."""
    yield from heading_rows("storage", "noise", *_FIGURES)
    for name, storage in _SHAPES.items():
        for noise in _NOISES:
            found = _found(f"{name} {noise}", partial(storage, noise=noise), searches)
            yield name, f"{100 * noise:g} %", *_figures(found)


def _others(searches: int) -> Iterator[Sequence[str]]:
    """Yield the same for storage that scatters in other ways."""
    yield from heading_rows("storage", *_FIGURES)
    for name, storage in _OTHERS.items():
        yield name, *_figures(_found(name, storage, searches))


def _doubts(searches: int) -> Iterator[Sequence[str]]:
    """Yield how searches end on storage without a line."""
    yield from heading_rows("storage", "endings")
    for name, storage in _DOUBTFUL.items():
        endings = Counter(result.ending for _, result in _found(name, storage, searches))
        yield name, ", ".join(f"{ending} {percent(number / searches)}" for ending, number in endings.most_common())


def _ends(searches: int) -> Iterator[Sequence[str]]:
    """Yield the same where the line is near the highest or the lowest load, and claims that it is beyond though not."""
    yield from heading_rows("line", "noise", *_FIGURES, "claimed beyond", "wrongly")
    for name, (between, wrong) in _ENDS.items():
        for noise in (0.01, 0.05):
            found = _found(f"{name} {noise}", partial(linear, noise=noise), searches, between, _SHORT)
            endings = [result.ending for _, result in found]
            claims = sum(ending in (Ending.NEVER_BROKE, Ending.BROKEN_AT_FIRST) for ending in endings)
            shares = percent(claims / searches), percent(endings.count(wrong) / searches)
            yield name, f"{100 * noise:g} %", *_figures(found), *shares


def _few(searches: int) -> Iterator[Sequence[str]]:
    """Yield how searches go where too few operations complete at low loads to know the percentile."""
    yield from heading_rows("percentile known from", "endings", "probes", "of these too few operations")
    for part in _KNOWN_FROM:
        found = [
            search(sparse(linear(_LINE, 0.02), part * _LINE), _SETTINGS, f"few {number}")[0]
            for number in range(searches)
        ]
        endings = Counter(result.ending for result in found)
        counts = [[result.probes for result in found], [result.probes - result.counted for result in found]]
        ranges = [f"{min(values)} to {max(values)}" for values in counts]
        shares = ", ".join(f"{ending} {percent(number / searches)}" for ending, number in endings.most_common())
        yield f"{100 * part:g} % of the line", shares, *ranges


def _storms(searches: int) -> Iterator[Sequence[str]]:
    """Yield how often the interval contains the storm line, of storage that loses a known part of its speed."""
    yield from heading_rows("storage", "noise", *_FIGURES)
    for name, storage in _SHAPES.items():
        for noise in _STORM_NOISES:
            found = []
            for number in range(searches):
                seed = f"storm {name} {noise} {number}"
                line, left = drawn(seed, _LINES), drawn(f"{seed} left", _LEFT)
                calm, _ = search(storage(line, noise=noise), _SETTINGS, f"{seed} calm")
                disturbed = storage(left * line, noise=noise)
                found.append((left * line, search(disturbed, _STORM.below(calm), f"{seed} trials")[0]))
            yield name, f"{100 * noise:g} %", *_figures(found)


def _found(
    name: str,
    make: Callable[[float], Storage],
    searches: int,
    between: tuple[float, float] = _LINES,
    settings: Settings = _SETTINGS,
) -> Sequence[tuple[float, Line]]:
    """Return lines with what was found."""
    lines = [drawn(f"{name} {number}", between) for number in range(searches)]
    return [(line, search(make(line), settings, f"{name} {number} trials")[0]) for number, line in enumerate(lines)]


_FIGURES = ("interval contains the line", "median probes", "most probes", "median width", "precise")


def _figures(found: Sequence[tuple[float, Line]]) -> Iterator[str]:
    results = [result for _, result in found]
    yield percent(sum(_contains(result, line) for line, result in found) / len(found))
    yield f"{statistics.median(result.probes for result in results):g}"
    yield str(max(result.probes for result in results))
    width = statistics.median(result.width_percent or math.inf for result in results)
    yield f"{width:.1f} %" if math.isfinite(width) else "none"
    yield percent(sum(result.ending == "Precise" for result in results) / len(found))


def _contains(result: Line, line: float) -> bool:
    """Whether a result has an interval with the line; one end may be outside of the loads that may be offered."""
    if result.low is None and result.high is None:
        return False
    return (result.low or 0.0) <= line <= (result.high or math.inf)


_TABLES: Mapping[str, Callable[[int], Iterator[Sequence[str]]]] = {
    "coverage": _coverage,
    "others": _others,
    "ends": _ends,
    "doubts": _doubts,
    "few": _few,
    "storms": _storms,
}

if __name__ == "__main__":
    main()
