"""Maintenance windows: when runs may load, as the administrator has set it."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal, Self, get_args
from zoneinfo import ZoneInfo

from pydantic import Field, TypeAdapter, model_validator

from plimsoll.api.model import Model, TimeZone
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import estimate, trial_seconds

_DAY = timedelta(days=1)
_END_OF_DAY = "24:00"
_TIME_PATTERN = "([01][0-9]|2[0-3]):[0-5][0-9]"


Weekday = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
_WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)  # in the order of `date.weekday`


class MaintenanceWindow(Model):
    """A time of the day, on some days of the week. One that ends before it begins ends on the next day."""

    days: Annotated[tuple[Weekday, ...], Field(min_length=1)] = _WEEKDAYS  # on which it begins
    begin: Annotated[str, Field(alias="from", pattern=f"^{_TIME_PATTERN}$")]
    end: Annotated[str, Field(alias="to", pattern=f"^({_TIME_PATTERN}|{_END_OF_DAY})$")]
    time_zone: TimeZone = "Etc/UTC"

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if self.begin == self.end:
            raise ValueError(f'from and to are both {self.begin}; write from "00:00" to "24:00" for whole days')
        return self

    def on(self, day: date) -> tuple[datetime, datetime]:
        """Return begin and end of the window that begins on this date, on any day of the week."""
        zone, last = ZoneInfo(self.time_zone), day if self.begin < self.end != _END_OF_DAY else day + _DAY
        end = time.min if self.end == _END_OF_DAY else time.fromisoformat(self.end)
        begin = datetime.combine(day, time.fromisoformat(self.begin), zone)
        return begin.astimezone(UTC), datetime.combine(last, end, zone).astimezone(UTC)


Windows = tuple[MaintenanceWindow, ...]
WINDOWS: TypeAdapter[Windows] = TypeAdapter(Windows)


def next_start(windows: Windows, now: datetime, seconds: float) -> datetime | None:
    """Return when a load of that duration may start, now without windows; None if no joined windows are long enough."""
    if not windows:
        return now
    duration = timedelta(seconds=seconds)
    starts = ((max(now, begin), end) for begin, end in _open_times(windows, now, duration))
    return next((start for start, end in starts if start + duration <= end), None)


def closing_time(windows: Windows, now: datetime) -> datetime | None:
    """Return when the current window closes, or now if none is open; None without windows."""
    if not windows:
        return None
    return next((end for begin, end in _open_times(windows, now, timedelta()) if begin <= now < end), now)


def longest_load_seconds(plan: Plan) -> int:
    """Return how long a window must be to hold the longest trial of a plan, with the preparation before it."""
    longest = max(trial_seconds(point, plan.server_count) for point in plan.points)
    return estimate(plan).preparation_seconds + longest


def _open_times(windows: Windows, now: datetime, duration: timedelta) -> Iterator[tuple[datetime, datetime]]:
    """Yield begin and end of the times that do not end before now, merged, long enough to show any that repeats."""
    first = now.astimezone(UTC).date() - 2 * _DAY
    # Two weeks, since a change of the clocks may shorten one occurrence.
    days = [first + number * _DAY for number in range(duration.days + 18)]
    merged: list[tuple[datetime, datetime]] = []
    for begin, end in sorted(
        window.on(day) for window in windows for day in days if _WEEKDAYS[day.weekday()] in window.days
    ):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif begin < end:
            merged.append((begin, end))
    return (times for times in merged if times[1] > now)
