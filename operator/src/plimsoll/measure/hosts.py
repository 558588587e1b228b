"""The summary of a client's host, and of all clients' hosts: the median and the extremes of each quantity."""

from collections.abc import Sequence
from statistics import median

from plimsoll.api.surroundings import Hosts, HostSummary, Spread
from plimsoll.measure.sample import HostUse

_DECIMALS = 4
_MOST_BYTES = 2**63


def host_summary(host: HostUse) -> HostSummary:
    """Return a host's part of the result."""
    device = host.device
    return HostSummary(
        cpu=_rounded(host.cpu.used),
        cpu_limit=_rounded(host.cpu.limit),
        throttled_seconds=_rounded(host.cpu.throttled_seconds),
        node_cpu_busy=round(host.cpu.node_busy, _DECIMALS),
        memory_bytes=host.memory.used,
        received_bytes_per_second=round(host.network.received),
        sent_bytes_per_second=round(host.network.sent),
        device_read_bytes_per_second=round(device.read) if device else None,
        device_written_bytes_per_second=round(device.written) if device else None,
        device_busy=min(1.0, round(device.busy, _DECIMALS)) if device else None,
        device_queue=round(device.queue, _DECIMALS) if device else None,
        device_read_request_bytes=_request_bytes(device.read, device.reads) if device else None,
        device_write_request_bytes=_request_bytes(device.written, device.writes) if device else None,
    )


def hosts_of(hosts: Sequence[HostSummary]) -> Hosts | None:
    """Summarise the observed hosts; None if there are none. A quantity that no host reports is absent."""
    quantities = [name for name in Hosts.model_fields if name != "clients"]
    return Hosts(clients=len(hosts), **{name: _spread(hosts, name) for name in quantities}) if hosts else None


def _request_bytes(volume: float, requests: float | None) -> int | None:
    """Return the mean size of a request from bytes and requests per second; None without requests, or beyond 2^63."""
    mean = volume / requests if requests else _MOST_BYTES
    return round(mean) if mean < _MOST_BYTES else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)


def _spread(hosts: Sequence[HostSummary], quantity: str) -> Spread | None:
    known = [value for host in hosts if (value := getattr(host, quantity)) is not None]
    return Spread(min=min(known), median=median(known), max=max(known)) if known else None
