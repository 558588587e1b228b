"""The schedule of a `BenchmarkSuite`: a cron expression in a time zone."""

from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field

from plimsoll.api.model import Integer, Model
from plimsoll.api.schema import ServerOnly

MIN_DEADLINE_SECONDS = 10
"""Source: Kubernetes, CronJob; its controller misses times with less."""

_MAX_DEADLINE_SECONDS = 365 * 24 * 3600
_FIELDS = 5
_CRON_PATTERN = r"^\S+(\s+\S+){4}$"
_TIME_ZONE_PATTERN = r"^[A-Za-z0-9+_-]+(/[A-Za-z0-9+_-]+)*$"
_FORM = 'write five fields such as "0 3 * * 0": minute, hour, day of month, month, day of week'


def _check_cron(expression: str) -> str:
    if len(expression.split()) != _FIELDS:
        message = f"is no cron expression; {_FORM}"
        raise ValueError(message)
    try:
        # Any moment: an expression that has a time has one every few years, even on 29 February.
        found = next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)), None)
    except CronSimError as error:
        message = f"is no cron expression ({error}); {_FORM}"
        raise ValueError(message) from error
    if found is None:
        raise ValueError("never comes; choose a day that one of the months has")
    return expression


def _check_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        message = "is no known time zone; write a name of the time zone database, such as Europe/Berlin"
        raise ValueError(message) from error
    return name


_Deadline = Annotated[Integer, Field(ge=MIN_DEADLINE_SECONDS, le=_MAX_DEADLINE_SECONDS)]


class Schedule(Model):
    """When rounds start.

    Attributes:
        cron: Cron expression with five fields, such as "0 3 * * 0" for Sundays at three: minute, hour, day of month,
            month, day of week.
        time_zone: Time zone of the cron expression, by its name in the time zone database, such as Europe/Berlin.
        starting_deadline_seconds: How late a round may start, such as after an outage of the operator; at any time if
            absent. Of several missed times, only the last one counts.

    """

    cron: Annotated[str, Field(max_length=256), AfterValidator(_check_cron), ServerOnly(pattern=_CRON_PATTERN)]
    time_zone: Annotated[
        str, Field(max_length=64), AfterValidator(_check_time_zone), ServerOnly(pattern=_TIME_ZONE_PATTERN)
    ] = "Etc/UTC"
    starting_deadline_seconds: _Deadline | None = None
