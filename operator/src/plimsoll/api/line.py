"""The search for the line: the load at which latency breaks. The request of a workload, and the result."""

import math
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from plimsoll.api.model import Count, Integer, Model, Rule, ServerOnly
from plimsoll.api.operation import Rate
from plimsoll.api.quantity import LATENCY_PATTERN, LATENCY_RANGE, normal_latency, parse_latency
from plimsoll.api.storage import OsdsAway

MOST_PROBES = 40
MOST_STORM_PROBES = 20  # each takes OSDs away
STORM_SUFFIX = "-storm"  # of the names of points that search for a storm line, after the name of the calm line's point

_MAX_LOAD = 2**31 - 1

Percentile = Literal["50", "90", "95", "99", "99.9", "99.99"]  # of latency, in every result
Latency = Annotated[
    str,
    Field(pattern=LATENCY_PATTERN, max_length=16),
    BeforeValidator(normal_latency),
    Rule(
        rule=f"self.matches(r'{LATENCY_PATTERN}') && duration(self) >= duration('1us') && "
        "duration(self) <= duration('10s')",
        message=LATENCY_RANGE,
    ),
]


class Vary(StrEnum):
    """The kind of load that a search varies."""

    RATE = "Rate"
    """Offered operations per second of all clients together, in an open loop."""

    DEPTH = "Depth"
    """Operations in flight of all clients together, in a closed loop."""


class Ending(StrEnum):
    """Why a search ended."""

    EQUALS_CALM = "EqualsCalm"
    """The storm line is not below the interval of the calm line, above which nothing is offered: it is the same."""

    PRECISE = "Precise"
    """The interval is as narrow as requested, or no wider than the step between loads."""

    PROBES_USED_UP = "ProbesUsedUp"
    """The search made as many probes as it may; the interval is wider than requested."""

    NEVER_BROKE = "NeverBroke"
    """The line is above the highest load."""

    BROKEN_AT_FIRST = "BrokenAtFirst"
    """The line is below the lowest load."""

    PROBES_DO_NOT_COUNT = "ProbesDoNotCount"
    """Four probes in a row or at one load did not count, or no load yields enough operations for the percentiles."""

    NOT_MONOTONE = "NotMonotone"
    """The storage breaks in a range of loads and holds at higher ones, beyond chance: it has no line."""

    DRIFTING = "Drifting"
    """The storage became slower, or faster, during the search: its line moved."""


class ProbeOutcome(StrEnum):
    """Whether a trial at one load met the objectives."""

    MET = "Met"
    """The load was achieved, and all objectives hold."""

    LATE = "Late"
    """An objective does not hold."""

    NOT_ACHIEVED = "NotAchieved"
    """Less was achieved than offered: in total, by one client, of reads or of writes; or submissions blocked."""

    DEPTH_FULL = "DepthFull"
    """At least 1 % of a client's submissions filled the depth, or it was full for so long that too little arrived."""

    NOT_OFFERED = "NotOffered"
    """Clients offered less than half of the load, and not because the depth was full; the probe does not count."""

    UNKNOWN = "Unknown"
    """There are no trustworthy numbers, or too few operations for the percentile of an objective."""

    NOT_RECOVERED = "NotRecovered"
    """The objectives held, but not all placement groups were clean when the probe ended, so it does not count."""


class Objective(Model):
    """A percentile of latency and the highest value that it may have."""

    percentile: Percentile = "99"
    """Percentile of the latency of each operation."""
    latency: Latency
    """Highest latency that meets the objective, from 1us to 10s, such as 500us, 2.5ms or 1s."""

    @property
    def latency_microseconds(self) -> int:
        return parse_latency(self.latency)

    @property
    def latency_nanoseconds(self) -> int:
        return 1000 * self.latency_microseconds


class LineSearch(Model):
    """Searches for the line: the load at which half of the trials meet all objectives.

    Each combination of the axes gets one search. repetitions has no effect, because a search repeats loads itself.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.limit) || self.start <= self.limit",
            holds=lambda search: search.start <= search.highest_load,
            message="must be at most limit; decrease it, or increase limit",
            field_path=".start",
        ),
        Rule(
            rule="self.objectives.all(o, self.objectives.exists_one(p, p.percentile == o.percentile))",
            holds=lambda search: len({goal.percentile for goal in search.objectives}) == len(search.objectives),
            message="must name each percentile once; remove one of them",
            field_path=".objectives",
        ),
    )

    vary: Vary = Vary.RATE
    """Rate varies the offered operations per second of all clients together, which arrive at random times however fast
    the storage answers (open loop); Depth varies the operations in flight of all clients together."""
    start: Annotated[Integer, Field(ge=1, le=_MAX_LOAD)]
    """First load, which doubles until an objective does not hold."""
    limit: Annotated[Integer, Field(ge=1, le=_MAX_LOAD)] | None = None
    """Highest load that is offered; as much as the clients can offer if absent."""
    precision_percent: Annotated[Integer, Field(ge=1, le=50)] = 10
    """The search ends when the 95 % interval is at most this wide, in percent of the estimate."""
    objectives: Annotated[tuple[Objective, ...], Field(min_length=1, max_length=4)]
    """All must hold."""

    @property
    def highest_load(self) -> int:
        """The limit, which every search of a plan has."""
        return _MAX_LOAD if self.limit is None else self.limit


class OfferedLoad(Model):
    """The load that a trial offered, and what of it arrived."""

    offered: Annotated[float, ServerOnly(minimum=0, above_minimum=True)]
    """Offered load: operations per second or operations in flight of all clients together."""
    achieved: Rate | None = None
    """Achieved load: completed operations per second, or the mean depth in flight; absent without numbers."""
    depth_full_percent: Annotated[float, ServerOnly(minimum=0)] | None = None
    """Percentage of submissions that filled the depth, on the client with the most; absent without numbers, and unless
    operations are due at random times."""


class Probe(OfferedLoad):
    """The load of a trial of a search."""

    outcome: ProbeOutcome
    """Whether the trial met the objectives."""


class Line(Model):
    """The line as far as it is known, in operations per second or operations in flight of all clients together."""

    ending: Ending | None = None
    """Why the search ended; absent while it continues."""
    probes: Count
    """Number of loads tried so far, repeated ones included."""
    counted: Count
    """Number of these that the estimate rests on; the others were not trustworthy."""
    estimate: Rate | None = None
    """Load at which half of the trials meet all objectives; absent if it is outside of the loads that may be offered,
    or if no probe met the objectives at or below it, or none broke at or above it. With EqualsCalm, these numbers are
    the calm line's."""
    low: Rate | None = None
    """Lower end of its 95 % interval; absent if no probe met the objectives at or below the estimate."""
    high: Rate | None = None
    """Upper end of its 95 % interval; absent if no probe broke at or above the estimate."""
    storm: OsdsAway | None = None
    """OSDs that were away in each probe; absent unless this is the storm line."""

    @property
    def most_probes(self) -> int:
        return MOST_PROBES if self.storm is None else MOST_STORM_PROBES

    @property
    def width_percent(self) -> float | None:
        """The width of the interval in percent of the estimate; None if an end is unknown, or a percentage of 0."""
        if not self.estimate or self.low is None or self.high is None:
            return None
        width = 100 * (self.high - self.low) / self.estimate
        return width if 0 <= width < math.inf else None
