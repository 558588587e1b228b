"""The caches that were dropped, in the table of the runs."""

import pytest

from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.api.surroundings import DroppedCaches
from plimsoll.report.overview import overview_section
from support.goldens import run_of, tables_of, texts
from support.results import measured, result, trial


def cold(number: int) -> Trial:
    caches = DroppedCaches(node_count=2)
    return trial(number, measured(100)).model_copy(update={"caches": caches})


def shown(*results: BenchmarkResult) -> str | None:
    (table,) = tables_of(overview_section([run_of(list(results))]))
    return dict(texts(table)).get("Caches")


WARM = trial(1, measured(100))


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([result([WARM])], None),
        ([result([cold(0), cold(1)])], "2 of 2 trials"),
        ([result([cold(0)], point="a"), result([WARM], point="b")], "1 of 2 trials"),
        ([result([cold(0), WARM])], "1 of 2 trials"),
    ],
    ids=["warm", "cold", "one of two points", "one of two trials"],
)
def test_dropped_caches_are_shown_with_their_trials(results: list[BenchmarkResult], expected: str | None) -> None:
    assert shown(*results) == (expected and f"dropped before {expected}")
