"""Maintenance windows: when a load may start, and when a window closes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.plan.expand import estimate, trial_seconds
from plimsoll.plan.windows import WINDOWS, Windows, closing_time, longest_load_seconds, next_start
from support.client_documents import make_plan

HOUR = 3600
NIGHTS = {"from": "22:00", "to": "06:00"}
WEEKEND = {"days": ["Sat", "Sun"], "from": "00:00", "to": "24:00"}
BERLIN = {"timeZone": "Europe/Berlin"}
ALWAYS = {"from": "00:00", "to": "24:00"}


def windows(*given: dict[str, Any]) -> Windows:
    return WINDOWS.validate_python(given)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "now", "hours", "start"),
    [
        ((), "01-05T12:00", 1000, "01-05T12:00"),  # 5 January 2026 is a Monday
        ([NIGHTS], "01-05T12:00", 1, "01-05T22:00"),
        ([NIGHTS], "01-05T23:00", 7, "01-05T23:00"),
        ([NIGHTS], "01-05T23:01", 7, "01-06T22:00"),  # it would end a minute too late
        ([NIGHTS], "01-06T05:00", 1, "01-06T05:00"),  # in the window that began yesterday
        ([NIGHTS], "01-06T06:00", 1, "01-06T22:00"),
        ([NIGHTS], "01-05T12:00", 8, "01-05T22:00"),
        ([NIGHTS], "01-05T12:00", 8.1, None),
        ([NIGHTS | {"days": ["Fri"]}], "01-10T05:00", 1, "01-10T05:00"),  # begins on Friday, ends on Saturday
        ([NIGHTS | {"days": ["Fri"]}], "01-10T22:00", 1, "01-16T22:00"),
        ([WEEKEND], "01-05T12:00", 48, "01-10T00:00"),  # both days are one window
        ([WEEKEND], "01-05T12:00", 49, None),
        ([WEEKEND, NIGHTS], "01-05T12:00", 49, "01-09T22:00"),  # Friday's night, the weekend, and Sunday's night
        ([ALWAYS], "01-05T12:00", 1000, "01-05T12:00"),
        ([NIGHTS | BERLIN], "01-05T12:00", 1, "01-05T21:00"),
        ([NIGHTS | BERLIN], "07-06T12:00", 1, "07-06T20:00"),
        # In the night to 29 March, Berlin's clocks skip the hour from two.
        ([NIGHTS | BERLIN], "03-28T12:00", 8, "03-29T20:00"),
        ([{"from": "02:10", "to": "02:50"} | BERLIN], "03-28T12:00", 0.5, "03-29T01:10"),
    ],
)
def test_a_load_starts_when_it_ends_within_a_window(
    given: list[dict[str, Any]], now: str, hours: float, start: str | None
) -> None:
    expected = None if start is None else at(start)
    assert next_start(windows(*given), at(now), hours * HOUR) == expected


@pytest.mark.parametrize(
    ("given", "now", "closes"),
    [
        ((), "01-05T12:00", None),
        ([NIGHTS], "01-05T23:00", "01-06T06:00"),
        ([NIGHTS], "01-05T12:00", "01-05T12:00"),  # none is open
        ([WEEKEND], "01-10T12:00", "01-12T00:00"),
    ],
)
def test_a_window_closes_at_its_end(given: list[dict[str, Any]], now: str, closes: str | None) -> None:
    assert closing_time(windows(*given), at(now)) == (None if closes is None else at(closes))


def test_windows_without_a_gap_do_not_close_soon() -> None:
    closes = closing_time(windows(ALWAYS), at("01-05T12:00"))
    assert closes is not None
    assert closes - at("01-05T12:00") > timedelta(days=7)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ({"from": "22:00", "to": "22:00"}, 'from and to are both 22:00; write from "00:00" to "24:00" for whole days'),
        (NIGHTS | {"timeZone": "Europe/Nowhere"}, "is not a known time zone"),
        (NIGHTS | {"days": []}, "at least 1 item"),
        (NIGHTS | {"days": ["Monday"]}, "should be 'Mon'"),
        ({"from": "25:00", "to": "06:00"}, "should match pattern"),
        ({"from": "24:00", "to": "06:00"}, "should match pattern"),
        ({"from": "22:00"}, "Field required"),
        (NIGHTS | {"zone": "UTC"}, "Extra inputs"),
    ],
)
def test_an_impossible_window_is_refused(window: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        windows(window)


def test_windows_are_written_as_they_are_read() -> None:
    given = windows(NIGHTS | BERLIN, WEEKEND)
    assert WINDOWS.validate_json(WINDOWS.dump_json(given)) == given


def test_a_window_must_hold_the_longest_trial_and_the_preparation() -> None:
    plan = make_plan()
    long = plan.points[1].model_copy(update={"runtime_seconds": 500})
    plan = plan.model_copy(update={"points": (plan.points[0], long)})
    assert longest_load_seconds(plan) == estimate(plan).preparation_seconds + trial_seconds(long)
