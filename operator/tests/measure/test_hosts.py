from plimsoll.api.surroundings import HostSummary, Spread
from plimsoll.measure.sample import DeviceUse
from plimsoll.measure.trial import host_summary, hosts_of
from support.client_documents import quiet_host


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


def test_requests_are_as_large_as_their_bytes_and_their_number_say() -> None:
    """Buffered writes of 4 KiB reach a device as 4 MiB: the case of a published study."""
    device = DeviceUse(number="8:0", read=0, written=50 * 2**22, reads=0, writes=50, busy=1.0, queue=65.0)
    found = host_summary(quiet_host(device=device))
    assert (found.device_read_request_bytes, found.device_write_request_bytes) == (None, 2**22)


def test_requests_of_an_impossible_size_have_none() -> None:
    found = host_summary(
        quiet_host(device=DeviceUse(number="8:0", read=9e18, written=0, reads=1e-300, busy=1, queue=1))
    )
    assert found.device_read_request_bytes is None


def test_requests_of_a_device_without_their_number_have_no_size() -> None:
    found = host_summary(quiet_host(device=DeviceUse(number="8:0", read=1, written=1, busy=1.0, queue=1.0)))
    assert (found.device_read_request_bytes, found.device_write_request_bytes) == (None, None)
