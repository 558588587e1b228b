"""The times of a schedule: a cron expression in a time zone.

The clock of most time zones is changed twice a year. An expression with a fixed minute and hour fires once on each of
these days: a time that the clock skips is moved to the first minute after the gap, and of a time that it repeats only
the first one counts. An expression whose minute or hour starts with `*` follows elapsed time: it fires in both
repetitions of an hour, and not in a skipped one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_FIELDS = 5
_LARGEST_CLOCK_CHANGE = timedelta(hours=25)
"""Source: time zone database; Samoa skipped a whole day in 2011."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule; `parse` checks it."""

    cron: str
    zone: ZoneInfo

    @classmethod
    def parse(cls, cron: str, time_zone: str) -> Self:
        """Return the schedule.

        Raises:
            ValueError: the time zone is unknown, or the expression is invalid or never fires.

        """
        schedule = cls(cron=cron, zone=_zone(time_zone))
        if len(cron.split()) != _FIELDS:
            raise ValueError("needs five fields: minute, hour, day of month, month, day of week")
        try:
            found = next(CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC)), None)
        except CronSimError as error:
            raise ValueError(f"is no cron expression: {error}") from error
        if found is None:
            raise ValueError("never fires, because no month has such a day")
        return schedule

    def first_after(self, moment: datetime) -> datetime:
        """Return the first time after a moment, in UTC."""
        return next(time for time in self._times(moment) if time > moment)

    def last_until(self, moment: datetime) -> datetime:
        """Return the last time that is not after a moment, in UTC."""
        # CronSim calculates in local time: it starts behind a possible clock change, as it might skip a time otherwise.
        start = moment + _LARGEST_CLOCK_CHANGE
        return next(time for time in self._times(start, reverse=True) if time <= moment)

    def _times(self, start: datetime, *, reverse: bool = False) -> Iterator[datetime]:
        for time in CronSim(self.cron, start.astimezone(self.zone), reverse=reverse):
            yield time.astimezone(UTC)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"is no known time zone: {name}") from error
