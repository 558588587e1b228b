from plimsoll.api.result import HostSummary
from plimsoll.api.surroundings import Spread
from plimsoll.measure.fleet import hosts_of


def host(busy: float, cpu: float | None) -> HostSummary:
    return HostSummary(node_cpu_busy=busy, cpu=cpu, received_bytes_per_second=1, sent_bytes_per_second=2)


def test_every_host_counts() -> None:
    found = hosts_of([host(0.1 * number, None) for number in range(1, 10)])
    assert found is not None
    assert found.clients == 9
    assert found.node_cpu_busy == Spread(min=0.1, median=0.5, max=0.9)
    assert found.sent_bytes_per_second == Spread(min=2, median=2, max=2)


def test_quantity_is_that_of_the_hosts_that_tell_it() -> None:
    found = hosts_of([host(0.5, 1.5), host(0.5, None), host(0.5, 0.5)])
    assert found is not None
    assert found.cpu == Spread(min=0.5, median=1.0, max=1.5)
    assert (found.memory_bytes, found.device_busy) == (None, None)


def test_no_host_has_no_summary() -> None:
    assert hosts_of([]) is None
