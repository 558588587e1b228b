"""The load of a host that runs only this client, as an agent observes it."""

from plimsoll.measure.sample import CpuUse, DeviceUse, HostUse, MemoryUse, NetworkUse

GIBIBYTE = 2**30


def quiet_host(seconds: float = 22.0, *, device: DeviceUse | None = None) -> HostUse:
    """Return a host on which no check finds anything."""
    return HostUse(
        seconds=seconds,
        cpu=CpuUse(limit=2, used=0.5, throttled_periods=0, throttled_seconds=0, node_busy=0.25, node_processors=8),
        memory=MemoryUse(limit=GIBIBYTE, used=GIBIBYTE // 4, node_total=16 * GIBIBYTE, node_available=8 * GIBIBYTE),
        network=NetworkUse(received=1e6, sent=2e6),
        device=device,
    )
