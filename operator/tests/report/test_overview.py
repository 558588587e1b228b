"""The caches that were dropped, in the table of the runs."""

from plimsoll.api.result import Trial
from plimsoll.api.surroundings import DroppedCaches, OsdCaches
from plimsoll.report.overview import overview_section
from support.goldens import run_of, tables_of, texts
from support.results import measured, result, trial


def cold(number: int, osds: OsdCaches | None = None) -> Trial:
    caches = DroppedCaches(node_count=2, osds=osds)
    return trial(number, measured(100)).model_copy(update={"caches": caches})


def shown(*trials: Trial) -> str | None:
    (table,) = tables_of(overview_section([run_of([result(list(trials))])]))
    return dict(texts(table)).get("Caches")


def test_a_run_that_dropped_no_caches_has_no_such_row() -> None:
    assert shown(trial(0, measured(100))) is None


def test_dropped_caches_are_shown_with_their_nodes_and_osds() -> None:
    assert shown(cold(0), cold(1)) == "dropped before every trial: nodes with clients: 2"
    assert shown(cold(0, OsdCaches(count=3, osds=(0, 1, 2)))) == (
        "dropped before every trial: nodes with clients: 2; OSDs: 3"
    )
    reason = OsdCaches(count=0, reason="the helper has no key")
    assert (shown(cold(0, reason)) or "").endswith("; OSDs: none, because the helper has no key")


def test_every_point_counts() -> None:
    results = [result([cold(0)], point="a"), result([trial(0, measured(100))], point="b")]
    (table,) = tables_of(overview_section([run_of(results)]))
    assert dict(texts(table))["Caches"].startswith("dropped before 1 of 2 trials: ")


def test_trials_with_warm_caches_are_not_hidden() -> None:
    assert (shown(cold(0), trial(1, measured(100))) or "").startswith("dropped before 1 of 2 trials: ")
