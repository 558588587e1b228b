"""The live metrics while a real fio runs."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.api.names import Outcome
from plimsoll.cli.launch import free_port
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import MetricFamily
from support.local_run import LocalRun, make_spec

pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.usefixtures("own_disk")]

IOPS = 400
CLIENTS = 2
WORKLOAD = {
    "name": "mixed",
    "fio": {"pattern": "randrw", "readPercent": 75, "ioDepth": [4], "jobs": 2, "rateIops": IOPS},
    "runtimeSeconds": 12,
    "rampSeconds": 3,
}

Scrape = Mapping[str, Mapping[frozenset[str], float]]


def scrape(port: int) -> Scrape | None:
    """Return every sample by name and label values; None without an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return None
    found: dict[str, dict[frozenset[str], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.values())] = sample.value
    return found


def value(scraped: Scrape, metric: MetricFamily, *labels: str) -> float | None:
    """Return the value whose labels have those values among theirs; None if there is none."""
    return next((v for have, v in scraped.get(metric.name, {}).items() if have >= set(labels)), None)


@pytest.mark.essential
def test_a_scrape_during_a_trial_shows_the_rates_of_its_tools_and_no_other_does(
    tmp_path: Path, fio: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("PLIMSOLL_METRICS_PORT", str(port))

    def first_trial() -> Scrape | None:
        """Return a scrape in which all clients report rates and reach them: the machine may be busy."""
        scraped = scrape(port) or {}
        reported = value(scraped, catalogue.LIVE_REPORTING) == CLIENTS
        reached = value(scraped, catalogue.LIVE_IOPS, "mixed", "read") == pytest.approx(0.75 * IOPS * CLIENTS, rel=0.3)
        return scraped if reported and reached and value(scraped, catalogue.LIVE_TRIAL_INFO, "mixed-000") else None

    def ramp_of_second() -> Scrape | None:
        """Return a scrape after the first trial in which the tools run again."""
        scraped = scrape(port) or {}
        over = value(scraped, catalogue.LIVE_TRIALS, "done") == 1
        return scraped if over and value(scraped, catalogue.LIVE_CLIENTS, "measuring") == CLIENTS else None

    spec = make_spec(workloads=[WORKLOAD], repetitions=2)
    with LocalRun(tmp_path, fio, spec) as run:
        first = run.wait_for(first_trial)
        ramp = run.wait_for(ramp_of_second)
        run.complete()
    assert {trial.outcome for trial in run.trials()} == {Outcome.MEASURED}

    read = value(first, catalogue.LIVE_IOPS, "mixed", "read")
    write = value(first, catalogue.LIVE_IOPS, "mixed", "write")
    assert write == pytest.approx(0.25 * IOPS * CLIENTS, rel=0.3)
    assert value(first, catalogue.LIVE_BYTES, "mixed", "read") == pytest.approx(4096 * (read or 0), rel=0.02)
    assert 0 < (value(first, catalogue.LIVE_TRIAL_ELAPSED) or 0) < 1
    assert catalogue.LIVE_LATENCY.name not in first

    assert value(ramp, catalogue.LIVE_REPORTING) == 0
    assert catalogue.LIVE_IOPS.name not in ramp, "what fio did in the trial before is not what it does"
    assert (value(ramp, catalogue.LIVE_LATENCY, "mixed-000", "read", "0.99") or 0) > 0
    assert scrape(port) is None, "with the conductor its metrics go"
