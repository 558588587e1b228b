"""What the tools of the trial under way say while they run, added up over its clients."""

from plimsoll.api.names import Operation
from plimsoll.api.state import Live, LiveRate
from plimsoll.conductor.phases import Running
from plimsoll.conductor.session import Session
from plimsoll.conductor.timings import Moment

_INTERVALS = 3
"""Who has not been heard of for so many intervals is not counted any more."""


def live_rates(session: Session, moment: Moment) -> Live | None:
    """Return the newest rates of a trial's clients, added up; None if no tool runs, or none has said anything."""
    if not isinstance(session.phase, Running):
        return None
    since = moment.seconds - _INTERVALS * session.timings.live_seconds(session.plan.clients)
    clients = session.roster.get(session.phase.attempt.clients)
    told = [client.rates for client in clients if client.rates and client.rated_at >= since]
    if not told:
        return None
    sums: dict[Operation, LiveRate] = {}
    for rate in (rate for rates in told for rate in rates):
        sums[rate.operation] = _sum(sums.get(rate.operation), rate)
    return Live(clients=len(told), rates=tuple(sums.values()))


def _sum(one: LiveRate | None, other: LiveRate) -> LiveRate:
    if one is None:
        return other
    return LiveRate(
        operation=one.operation,
        iops=one.iops + other.iops,
        bytes_per_second=one.bytes_per_second + other.bytes_per_second,
    )
