"""The times of a schedule, also when the clock changes."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.suite import Schedule
from plimsoll.suite.rounds.observed import first_time_after, last_time_until

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def times(cron: str, zone: str, start: str, end: str) -> list[str]:
    """Return the times after `start` until `end`, as local times with offset."""
    schedule, found, moment = Schedule(cron=cron, time_zone=zone), [], at(start)
    while (moment := first_time_after(schedule, moment)) <= at(end):
        found.append(moment.astimezone(ZoneInfo(zone)).isoformat())
    return found


def test_schedule_fires_at_the_local_time_of_its_zone() -> None:
    assert times("0 3 * * 0", "Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-12T12:00:00Z") == [
        "2026-07-05T03:00:00+02:00",
        "2026-07-12T03:00:00+02:00",
    ]


@pytest.mark.parametrize("cron", ["0 2 * * *", "30 2 * * *", "0,30 2 * * *"])
def test_time_that_the_clock_skips_is_moved_behind_the_gap_and_fires_once(cron: str) -> None:
    found = times(cron, "Europe/Berlin", "2026-03-28T12:00:00+01:00", "2026-03-29T12:00:00+02:00")
    assert found == ["2026-03-29T03:00:00+02:00"]


def test_time_that_the_clock_repeats_fires_once_the_first_time() -> None:
    found = times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00", "2026-10-25T12:00:00+01:00")
    assert found == ["2026-10-25T02:30:00+02:00"]


def test_time_that_the_clock_repeats_is_over_during_the_repetition() -> None:
    schedule = Schedule(cron="30 2 * * *", time_zone="Europe/Berlin")
    during = at("2026-10-25T02:10:00+01:00")
    assert first_time_after(schedule, during) == at("2026-10-26T02:30:00+01:00")
    assert last_time_until(schedule, during) == at("2026-10-25T02:30:00+02:00")


def test_periodic_schedule_follows_elapsed_time_when_the_clock_changes() -> None:
    assert times("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:40:00+02:00", "2026-10-25T03:00:00+01:00") == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T03:00:00+01:00",
    ]


_CRONS = st.sampled_from(["30 2 * * *", "0 * * * *", "*/20 * * * *", "15 1-4 * * *", "0 0 1 * *", "5 2,3 * * 0"])
_ZONES = st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Etc/UTC"])
_MOMENTS = st.one_of(
    st.datetimes(datetime(2009, 1, 1), datetime(2035, 1, 1)).map(lambda one: one.replace(tzinfo=UTC)),  # noqa: DTZ001
    st.integers(-(10**4), 10**4).map(lambda seconds: at("2026-10-25T01:00:00Z") + timedelta(seconds=seconds)),
    st.integers(-(10**4), 10**4).map(lambda seconds: at("2026-03-29T01:00:00Z") + timedelta(seconds=seconds)),
    st.integers(-(10**5), 10**5).map(lambda seconds: at("2011-12-30T10:00:00Z") + timedelta(seconds=seconds)),
)


@given(_CRONS, _ZONES, _MOMENTS)
def test_first_and_last_time_are_neighbours(cron: str, zone: str, moment: datetime) -> None:
    schedule = Schedule(cron=cron, time_zone=zone)
    before, after = last_time_until(schedule, moment), first_time_after(schedule, moment)
    assert before <= moment < after
    assert first_time_after(schedule, before) == after
    assert last_time_until(schedule, after) == after
    assert last_time_until(schedule, after - timedelta(microseconds=1)) == before
