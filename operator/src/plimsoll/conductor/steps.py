"""What a point's tool does before and after it measures, and how long each part of an attempt may take."""

from plimsoll.conductor.phases import Attempt
from plimsoll.conductor.roster import Roster, choose
from plimsoll.conductor.timings import Timings
from plimsoll.plan.document import Point
from plimsoll.tools.base import ACTOR_CLIENT, Roles, StepKind, Timing, ToolParameters
from plimsoll.tools.registry import TOOLS


def has_step(point: Point, step: StepKind) -> bool:
    """Tell whether a trial of the point has such a step."""
    return step in TOOLS[point.tool].steps(_parameters(point))


def participants(point: Point, roster: Roster) -> tuple[int, ...]:
    """Return which clients take part in a trial of the point."""
    if TOOLS[point.tool].roles is Roles.ACTOR:
        return (ACTOR_CLIENT,)
    return choose(roster, point.clients)


def staging_seconds(point: Point, timings: Timings) -> float:
    """Return how long the clients may take to get ready before they are armed."""
    timing = Timing(ramp_seconds=point.ramp_seconds, runtime_seconds=point.runtime_seconds)
    planned = _parameters(point).preparation_seconds(timing)
    return planned + timings.work_factor * (point.ramp_seconds + point.runtime_seconds) + timings.staging_grace


def lead_seconds(attempt: Attempt, roster: Roster, timings: Timings) -> float:
    """Return how far ahead T0 lies; each further attempt gets more time to arm."""
    round_trip = max((2 * client.clock.error for client in roster if client.clock), default=0.0)
    lead = max(timings.lead, timings.lead_per_round_trip * round_trip)
    return (lead + timings.lead_per_client * len(attempt.clients)) * (1 + attempt.key.attempt)


def overrun_seconds(point: Point, timings: Timings) -> float:
    """Return how long a tool may take beyond ramp and runtime: longer if these do not end it, or if it cleans up."""
    trial = point.ramp_seconds + point.runtime_seconds
    work = 0 if TOOLS[point.tool].windowed else timings.work_factor * trial
    cleaning = trial + timings.clean_up_grace if has_step(point, StepKind.CLEAN_UP) else 0
    return timings.overrun_grace + work + cleaning


def _parameters(point: Point) -> ToolParameters:
    return TOOLS[point.tool].parameters.model_validate(point.parameters)
