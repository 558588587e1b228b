"""Schedules of suites: a cron expression that has times, in a time zone that exists."""

from datetime import UTC, datetime

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.api.errors import problems_of
from plimsoll.api.suite import Schedule

FORM = 'write five fields such as "0 3 * * 0"'
NUMBERS = st.integers(0, 70).map(str)
TERMS = st.sampled_from(["*", "L", "LW", "MON", "JAN", "5L", "1#2", ""]) | NUMBERS
RANGES = st.builds("{}-{}".format, TERMS, NUMBERS) | st.builds("{}/{}".format, TERMS, NUMBERS) | TERMS
FIELDS = st.lists(RANGES, min_size=1, max_size=3).map(",".join)
EXPRESSIONS = st.lists(FIELDS, min_size=4, max_size=6).map(" ".join) | st.text(max_size=30)


def problem(**fields: object) -> str:
    with pytest.raises(ValidationError) as caught:
        Schedule.model_validate({"cron": "0 3 * * 0"} | fields)
    (found,) = problems_of(caught.value)
    return str(found)


@pytest.mark.parametrize("cron", ["0 3 * * 0", "*/15 * * * *", "0 0 29 2 *", "0 3 1,15 * MON-FRI", "5 4 L * *"])
@pytest.mark.parametrize("zone", ["Etc/UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+1", "UTC"])
def test_valid_schedule(cron: str, zone: str) -> None:
    found = Schedule.model_validate({"cron": cron, "timeZone": zone, "startingDeadlineSeconds": 10})
    assert (found.cron, found.time_zone, found.starting_deadline_seconds) == (cron, zone, 10)


def test_defaults() -> None:
    found = Schedule.model_validate({"cron": "0 3 * * 0"})
    assert (found.time_zone, found.starting_deadline_seconds) == ("Etc/UTC", None)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cron": "@daily"}, f'cron: "@daily" is not a cron expression; {FORM}'),
        ({"cron": "0 0 3 * * 0"}, f'cron: "0 0 3 * * 0" is not a cron expression; {FORM}'),
        ({"cron": "60 3 * * 0"}, f'cron: "60 3 * * 0" is not a cron expression (Bad minute); {FORM}'),
        ({"cron": "TZ=UTC 3 * * 0"}, 'cron: "TZ=UTC 3 * * 0" is not a cron expression (Bad minute)'),
        ({"cron": "0 0 31 4 *"}, 'cron: "0 0 31 4 *" is not a cron expression (Bad day-of-month)'),
        ({"cron": "0 0 */31 2 1#5"}, 'cron: "0 0 */31 2 1#5" never occurs; choose a day that one of the months has'),
        ({"timeZone": "Berlin"}, 'timeZone: "Berlin" is not a known time zone; write a name of the time zone database'),
        ({"timeZone": "../etc/passwd"}, 'timeZone: "../etc/passwd" is not a known time zone'),
        ({"timeZone": "Europe"}, 'timeZone: "Europe" is not a known time zone'),
        ({"timeZone": ""}, 'timeZone: "" is not a known time zone'),
        ({"startingDeadlineSeconds": 9}, "startingDeadlineSeconds: 9 must be at least 10"),
    ],
)
def test_invalid_schedule_is_refused_with_the_remedy(fields: dict[str, object], expected: str) -> None:
    assert problem(**fields).startswith(expected)


@given(EXPRESSIONS)
def test_every_accepted_expression_has_a_time(cron: str) -> None:
    try:
        schedule = Schedule.model_validate({"cron": cron})
    except ValidationError:
        return
    assert next(CronSim(schedule.cron, datetime(2026, 1, 1, tzinfo=UTC))) > datetime(2026, 1, 1, tzinfo=UTC)
