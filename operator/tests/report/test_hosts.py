"""The load of hosts and devices in a report."""

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.api.surroundings import Hosts, Spread
from plimsoll.report.overview import hosts_section
from support.goldens import run_of, tables_of, texts
from support.results import measured, result, trial


def spread(low: float, middle: float, high: float) -> Spread:
    return Spread(min=low, median=middle, max=high)


def observed(number: int, queue: float, *, verdict: Verdict = Verdict.VALID) -> Trial:
    hosts = Hosts(
        clients=2,
        node_cpu_busy=spread(0.1, 0.25, 0.5),
        device_queue=spread(0, queue, 2 * queue),
        device_write_request_bytes=spread(4096, 2**22, 2**22),
    )
    return trial(number, measured(100), verdict=verdict).model_copy(update={"hosts": hosts})


def shown(*results: BenchmarkResult) -> dict[str, str]:
    section = hosts_section([run_of(list(results))])
    assert section is not None
    (table,) = tables_of(section)
    (row,) = texts(table)
    return dict(zip(table.headings, row, strict=True))


def test_a_point_shows_the_median_and_the_highest_client() -> None:
    row = shown(result([observed(0, 10), observed(1, 30), observed(2, 20)]))
    assert row["Queue"] == "20.00 (60.00)"
    assert row["Node busy"] == "25 % (50 %)"
    assert row["Write request, KiB"] == "4,096.0 (4,096.0)"
    assert (row["Read request, KiB"], row["CPUs"]) == ("-", "-")


def test_trials_that_do_not_count_are_left_out() -> None:
    attempts = [observed(0, 99, verdict=Verdict.INVALID), observed(0, 10).model_copy(update={"attempt": 1})]
    assert shown(result(attempts))["Queue"] == "10.00 (20.00)"


def test_a_run_without_observed_hosts_has_no_such_section() -> None:
    assert hosts_section([run_of([result([trial(0, measured(100))])])]) is None
