"""The times of a schedule: a cron expression in a time zone.

The clock of most time zones is changed twice a year. An expression with a fixed minute and hour fires once on each of
these days: a time that the clock skips is moved to the first minute after the gap, and of a time that it repeats only
the first one counts. An expression whose minute or hour starts with `*` follows elapsed time: it fires in both
repetitions of an hour, and not in a skipped one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from plimsoll.api.schedule import Schedule

_LARGEST_CLOCK_CHANGE = timedelta(hours=25)
"""Source: time zone database; Samoa skipped a whole day in 2011."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The times of a valid schedule."""

    cron: str
    zone: ZoneInfo

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


def times_of(schedule: Schedule) -> Times:
    """Return the times of a schedule, which its model has checked."""
    return Times(cron=schedule.cron, zone=ZoneInfo(schedule.time_zone))
