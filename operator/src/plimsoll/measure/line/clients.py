"""What each client did of a load."""

from plimsoll.api.names import Operation
from plimsoll.measure.checking import checks
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.line.load import ClientLoad, mean_in_flight
from plimsoll.measure.sample import Measurement
from plimsoll.measure.series import Share
from plimsoll.measure.window import NANOSECONDS, Interval


def client_load(item: ClientMeasurement, window: Interval) -> ClientLoad:
    """Return what a client did in the window in which all clients measured."""
    shares = [share for share in item.shares if share.sample.operation is not Operation.SYNC]
    loads = [(_rate(share, window), _mean(share)) for share in shares]
    return ClientLoad(
        rate=sum(rate for rate, _ in loads),
        in_flight=mean_in_flight(loads),
        longest=max((share.sample.latency.max_nanoseconds for share in shares), default=0) / NANOSECONDS,
        depth_full_share=item.measurement.depth_full_share,
        blocked=_blocked(item.measurement),
    )


def _blocked(measurement: Measurement) -> float:
    """Return the share of the submitting threads' time that submissions took beyond what they cost a client."""
    cost = checks.THINKING_SECONDS * NANOSECONDS
    beyond = (one.ios * max(0.0, (one.submission_nanoseconds or 0.0) - cost) for one in measurement.operations)
    return sum(beyond) / (measurement.runtime * measurement.submitters)


def _rate(share: Share, window: Interval) -> float:
    return share.within(window).per_second(window.length).ios


def _mean(share: Share) -> float | None:
    latency = share.sample.latency
    return latency.mean_nanoseconds if latency.kind.has_mean else None
