"""The caches that were dropped, in the table of the runs."""

import pytest

from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.api.surroundings import DroppedCaches, OsdCaches
from plimsoll.report.overview import overview_section
from support.goldens import run_of, tables_of, texts
from support.results import measured, result, trial


def cold(number: int, osds: OsdCaches | None = None) -> Trial:
    caches = DroppedCaches(node_count=2, osds=osds)
    return trial(number, measured(100)).model_copy(update={"caches": caches})


def shown(*results: BenchmarkResult) -> str | None:
    (table,) = tables_of(overview_section([run_of(list(results))]))
    return dict(texts(table)).get("Caches")


WARM = trial(1, measured(100))
NO_KEY = OsdCaches(count=0, reason="the helper has no key")


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([result([WARM])], None),
        ([result([cold(0), cold(1)])], "every trial: nodes with clients: 2"),
        ([result([cold(0, OsdCaches(count=3, osds=(0, 1, 2)))])], "every trial: nodes with clients: 2; OSDs: 3"),
        (
            [result([cold(0, NO_KEY)])],
            "every trial: nodes with clients: 2; OSDs: none, because the helper has no key",
        ),
        ([result([cold(0)], point="a"), result([WARM], point="b")], "1 of 2 trials: nodes with clients: 2"),
        ([result([cold(0), WARM])], "1 of 2 trials: nodes with clients: 2"),
    ],
    ids=["warm", "cold", "with OSDs", "without a key", "one of two points", "one of two trials"],
)
def test_dropped_caches_are_shown_with_their_trials_nodes_and_osds(
    results: list[BenchmarkResult], expected: str | None
) -> None:
    assert shown(*results) == (expected and f"dropped before {expected}")
