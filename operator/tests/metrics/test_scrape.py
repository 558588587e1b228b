"""Whole scrapes: in both formats, against the catalogue, and whatever the results say."""

import asyncio
import os
import subprocess
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.exposition import generate_latest

from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import Sample
from plimsoll.metrics.exposition import Instruments, Snapshot, operator_snapshot
from plimsoll.metrics.objects import Exposed, UnreadableError, result_metrics, run_metrics, suite_metrics
from support.goldens import AFTERWARDS, RESULTS, RUN, SUITE, check_against_catalogue, scraped

Json = Any

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


def used() -> Instruments:
    """Return instruments all of which have been used."""
    instruments = Instruments()
    with instruments.step("observe"):
        pass
    instruments.step_failed("Forbidden")
    instruments.answered("get", 0.01, None)
    instruments.answered("create", 0.02, "409")
    instruments.answered("list", 30.0, "")
    instruments.ended("Valid")
    return instruments


def snapshot() -> Snapshot:
    results = [result_metrics(document, now=AFTERWARDS) for document in RESULTS]
    return operator_snapshot(results, [run_metrics(RUN)], used(), [suite_metrics(SUITE)])


def test_a_scrape_of_a_real_run_is_in_the_catalogue() -> None:
    families = scraped(snapshot())
    check_against_catalogue(families)
    assert {family.name for family in families} >= {
        "plimsoll_result_latency_seconds",
        "plimsoll_run_condition",
        "plimsoll_suite_comparison_verdict",
        "plimsoll_operator_api_request_errors",
        "plimsoll_operator_loop_lag_seconds",
        "process_resident_memory_bytes",
        "python_info",
    }


def test_an_operator_that_waits_says_only_that() -> None:
    families = scraped(Snapshot(lambda: [Sample(catalogue.OPERATOR_LEADER, (), 0)]))
    check_against_catalogue(families)
    samples = [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]
    assert samples == [("plimsoll_operator_leader", {}, 0.0)]


@pytest.mark.chart
def test_promtool_finds_nothing_wrong_with_a_scrape() -> None:
    promtool = os.environ.get("PLIMSOLL_PROMTOOL", "")
    assert promtool, (
        "PLIMSOLL_PROMTOOL names no promtool; run `make test-all`, or PLIMSOLL_PROMTOOL=$(hack/tool.sh promtool)"
    )
    found = subprocess.run(
        [promtool, "check", "metrics"], input=generate_latest(snapshot()), capture_output=True, check=False, timeout=60
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")


@st.composite
def spoilt(draw: st.DrawFn, document: Json) -> Json:
    """Return a document one part of which is something else, or gone."""
    if isinstance(document, dict) and document and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(document)))
        rest = {name: value for name, value in document.items() if name != key}
        return rest if draw(st.integers(0, 9)) == 0 else rest | {key: draw(spoilt(document[key]))}
    if isinstance(document, list) and document and draw(st.integers(0, 9)):
        index = draw(st.integers(0, len(document) - 1))
        return [*document[:index], draw(spoilt(document[index])), *document[index + 1 :]]
    return draw(ANYTHING)


def identified(document: Json) -> Json:
    """Return what the API server can only have stored as an object with a name and a namespace."""
    whole = document if isinstance(document, dict) else {}
    return whole | {"metadata": {"name": "n", "namespace": "b", "creationTimestamp": "2026-01-01T00:00:00Z"}}


@given(st.lists(st.sampled_from(RESULTS).flatmap(spoilt), max_size=3), spoilt(RUN), spoilt(SUITE))
def test_whatever_results_runs_and_suites_say_a_scrape_can_be_read(
    documents: list[Json], run: Json, suite: Json
) -> None:
    records: list[Exposed | None] = []
    for document in documents:
        try:
            records.append(result_metrics(identified(document), now=AFTERWARDS))
        except UnreadableError:
            records.append(None)
    suite_records = [suite_metrics(identified(suite))]
    families = scraped(operator_snapshot(records, [run_metrics(identified(run))], used(), suite_records))
    check_against_catalogue(families)
    unreadable = next(family for family in families if family.name == "plimsoll_results_unreadable")
    # A result without a verdict is no record of an index either; here it is None as well.
    assert unreadable.samples[0].value == records.count(None)


async def test_the_lag_of_the_loop_is_measured_until_that_is_stopped() -> None:
    instruments = Instruments()
    task = asyncio.create_task(instruments.watch_loop(pause=0.001))

    def count() -> float:
        return instruments.registry.get_sample_value("plimsoll_operator_loop_lag_seconds_count") or 0.0

    async with asyncio.timeout(60):
        while count() < 3:
            await asyncio.sleep(0.001)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert instruments.registry.get_sample_value("plimsoll_operator_loop_lag_seconds_sum") is not None
