import re

import pytest

from plimsoll.api.names import Verdict
from plimsoll.measure.cluster import MAX_SLOWEST_OSDS, osds_summary, speeds_of
from plimsoll.measure.sample import OsdRate
from plimsoll.measure.trial import measure_round
from support.client_documents import SECOND, T0, document, facts, measure, measurement, only, operation


def rate(osd: int, volume: int = 1000, seconds: float = 1.0) -> OsdRate:
    return OsdRate(osd=osd, ios=10, bytes=volume, seconds=seconds)


def test_osds_that_were_not_measured_are_absent() -> None:
    assert osds_summary([measurement()]) is None
    assert measure(document(0)).osds is None


def test_summary_keeps_the_slowest() -> None:
    found = osds_summary([measurement(osds=tuple(rate(osd, 1000 + osd) for osd in range(100)))])
    assert found is not None
    assert (found.count, found.mean_bytes_per_second, found.mean_iops) == (100, 1050, 10)
    assert (found.bytes_per_second.min, found.bytes_per_second.median) == (1000, 1049.5)
    assert [one.osd for one in found.slowest] == list(range(MAX_SLOWEST_OSDS))


def test_osd_that_was_measured_twice_has_one_rate() -> None:
    (speed,) = speeds_of([measurement(osds=(rate(0, 1000), rate(0, 3000, 3.0)))])
    assert (speed.osd, speed.bytes_per_second, speed.iops) == (0, 1000, 5)


def test_all_are_compared_if_no_class_is_known_and_classes_apart_if_they_are() -> None:
    slow = document(0, measurement(osds=(rate(0), rate(1), rate(2, 600))))
    finding = only(measure(slow), "OsdOutlier")
    assert "osd.2 at 60 % of the median of the others" in finding.message
    assert measure(slow, osd_classes={0: "ssd", 1: "ssd", 2: "hdd"}).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("rates", "slow"),
    [
        ((1000, 300, 300), 2),
        ((1000, 550), 1),
        ((1000,) * 3 + (550,) * 3, 3),
        ((1000, 720, 720), 0),
        ((1000, 900, 1100, 2000, 950, 1050), 0),
        ((300,), 0),
    ],
)
def test_half_of_the_osds_may_be_slow_and_two_of_three(rates: tuple[int, ...], slow: int) -> None:
    numbers = measure(document(0, measurement(osds=tuple(rate(osd, each) for osd, each in enumerate(rates)))))
    messages = [finding.message for finding in numbers.findings if finding.reason == "OsdOutlier"]
    assert len(re.findall(r"osd\.\d+ at", "".join(messages))) == slow


def test_many_outliers_are_named_within_bounds() -> None:
    rates = tuple(rate(osd, 1000 if osd < 60 else 100) for osd in range(100))
    finding = only(measure(document(0, measurement(osds=rates))), "OsdOutlier")
    assert "osd.60 at 10 %" in finding.message
    assert "and 34 more" in finding.message
    assert len(finding.message) < 1000


def test_osd_that_took_no_time_costs_the_measurement() -> None:
    finding = only_reasons(rate(0, seconds=0.0))
    assert finding == ["OutputUnreadable"]


def only_reasons(*rates: OsdRate) -> list[str]:
    return [finding.reason for finding in measure(document(0, measurement(osds=rates))).findings]


def test_bench_of_osds_is_no_traffic_of_its_client_and_has_no_ramp() -> None:
    """One client asks the OSDs one after the other: it neither runs for a time nor has a data set."""
    told = measurement(operation(cells=None), late=-5, runtime=90 * SECOND, osds=(rate(0), rate(1)))
    asked = document(0, told, data_set_bytes=0, launched_at=T0)
    numbers = measure_round(facts(1, windowed=False, network_bytes_per_second=1), {0: asked})
    assert (numbers.verdict, [finding.reason for finding in numbers.findings]) == (Verdict.VALID, [])
    assert numbers.osds is not None
