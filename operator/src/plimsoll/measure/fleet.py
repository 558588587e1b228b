"""What the hosts of all clients did, in a few numbers: how the median host fared, and how the extreme ones did."""

from collections.abc import Iterable, Sequence
from statistics import median

from plimsoll.api.result import Hosts, HostSummary
from plimsoll.api.surroundings import Spread


def hosts_of(hosts: Sequence[HostSummary]) -> Hosts | None:
    """Summarise the hosts that could be observed; None if there is none. A quantity that no host tells is absent."""
    if not hosts:
        return None
    return Hosts(
        clients=len(hosts),
        cpu=_spread(host.cpu for host in hosts),
        throttled_seconds=_spread(host.throttled_seconds for host in hosts),
        node_cpu_busy=_spread(host.node_cpu_busy for host in hosts),
        memory_bytes=_spread(host.memory_bytes for host in hosts),
        received_bytes_per_second=_spread(host.received_bytes_per_second for host in hosts),
        sent_bytes_per_second=_spread(host.sent_bytes_per_second for host in hosts),
        device_busy=_spread(host.device_busy for host in hosts),
    )


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return Spread(min=min(known), median=median(known), max=max(known)) if known else None
