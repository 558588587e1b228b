"""Measures how often compared lines are judged right: `compared_lines.py [SEARCHES]`; a table of
docs/explanation/comparing.md.

It simulates that many searches under each condition, from the measurements of trials on, and compares each with each
other one, after scaling both to the same line: of 60 searches, 3540 pairs. As each search is in many pairs, rates are
less precise than those of as many independent pairs.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations

from plimsoll.api.line import Line
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.values import Matching, Pair, RegressionRule
from plimsoll.measure.line.search import Settings
from support.results import SEARCH, searched
from support.simulated_storage import HockeyStick, Storage, cliff, drawn, linear, search

_SEARCHES = 60
_NOISES = (0.02, 0.05)
_PRECISIONS = (10, 5)
_LOSSES = (0.0, 0.1, 0.2)
_SETTINGS = Settings(start=SEARCH.start, limit=SEARCH.highest_load)
_LINES = (2_000, 60_000)
_SCALED = 20_000
_SHAPES: Mapping[str, Callable[..., Storage]] = {
    "linear": linear,
    "queue, its speed scatters": lambda line, noise: HockeyStick(line, speed_noise=noise),
    "cliff": cliff,
}
_HEADING = (
    *("storage", "noise", "precisionPercent"),
    *("false Regression", "no change is NoRegression", "10 % lower is found", "20 % lower is found"),
)


def main() -> None:
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else _SEARCHES
    print(f"\nall pairs of {searches} searches each\n")
    for row in _rows(searches):
        print(f"| {' | '.join(row)} |", flush=True)


def _rows(searches: int) -> Iterator[Sequence[str]]:
    yield _HEADING
    yield ["---"] * len(_HEADING)
    for name, shape in _SHAPES.items():
        for noise in _NOISES:
            for precision in _PRECISIONS:
                found = _found(f"{name} {noise}", partial(shape, noise=noise), precision, searches)
                nothing, *losses = [_conclusions(found, loss) for loss in _LOSSES]
                yield (
                    *(name, f"{100 * noise:g} %", str(precision)),
                    _share(nothing, Conclusion.REGRESSION, 2),
                    _share(nothing, Conclusion.NO_REGRESSION, 1),
                    *(_share(one, Conclusion.REGRESSION, 1) for one in losses),
                )


def _found(name: str, make: Callable[[float], Storage], precision: int, searches: int) -> Sequence[Line]:
    """Return what was found of each line, scaled as if all were the same."""
    settings = replace(_SETTINGS, precision_percent=precision)
    lines = [drawn(f"{name} {number}", _LINES) for number in range(searches)]
    return [_search(make(line), settings, f"{name} {number} trials", line) for number, line in enumerate(lines)]


def _search(storage: Storage, settings: Settings, seed: str, line: float) -> Line:
    found, _ = search(storage, settings, seed)
    return _times(
        Line(
            ending=found.ending,
            probes=found.probes,
            counted=found.counted,
            estimate=found.estimate,
            low=found.low,
            high=found.high,
        ),
        _SCALED / line,
    )


def _times(line: Line, factor: float) -> Line:
    loads = {name: load * factor for name in ("estimate", "low", "high") if (load := getattr(line, name)) is not None}
    return line.model_copy(update=loads)


def _conclusions(found: Sequence[Line], loss: float) -> Counter[Conclusion]:
    """Count the conclusions of all pairs of different searches, the candidate's line lower by this part."""
    before = [_result(line, "before") for line in found]
    after = [_result(_times(line, 1 - loss), "after") for line in found]
    numbers = permutations(range(len(found)), 2)
    return Counter(_conclusion(before[one], after[other]) for one, other in numbers)


def _result(line: Line, run: str) -> BenchmarkResult:
    plain = searched(line, run=run)
    return plain.model_copy(update={"status": plain.status.model_copy(update={"trials": ()})})


def _conclusion(baseline: BenchmarkResult, candidate: BenchmarkResult) -> Conclusion:
    pairs = (Pair(baseline=baseline, candidate=candidate),)
    return compare(Matching(pairs=pairs, baseline_only=(), candidate_only=()), RegressionRule()).conclusion


def _share(found: Counter[Conclusion], conclusion: Conclusion, decimals: int) -> str:
    return f"{100 * found[conclusion] / found.total():.{decimals}f} %"


if __name__ == "__main__":
    main()
