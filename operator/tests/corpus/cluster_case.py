"""A case's Ceph cluster, as the conductor's polls show it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from corpus.case import Fault, Setting, Trouble, Watch
from plimsoll.ceph.watch import (
    ClusterSample,
    ClusterStatus,
    ClusterWatch,
    FileSystemDetail,
    MetadataServer,
    OptionReading,
    Placement,
    PoolCounters,
)
from plimsoll.tools.fio.parameters import FioParameters

SECOND = 10**9
_POOL, _FOREIGN, _MANAGER = "bench", "foreign", ".mgr"
_FILE_SYSTEM = FileSystemDetail(number=1, name="bench", servers=1, metadata_pool=2, data_pools=(3,))
_HEALTHY = ClusterStatus(
    health="HEALTH_OK",
    checks={},
    pg_states={"active+clean": 97},
    osds=12,
    osds_up=12,
    osds_in=12,
    osds_up_since="1795272195",
    osds_in_since="1795271075",
    remapped_pgs=0,
    recovering_bytes_per_second=0,
    used_bytes=2**40,
    total_bytes=2**42,
    metadata_servers=(MetadataServer(file_system=1, rank=0, name="a", state="up:active", process=4150),),
)


def watch_of(setting: Setting, faults: Sequence[Fault], t0: int) -> ClusterWatch:
    """Return the polls of the cluster around the trial."""
    watch = setting.ceph or Watch()
    troubles = [trouble for fault in faults for trouble in fault.cluster]
    start = t0 + setting.ramp_seconds * SECOND
    first, last = -(setting.ramp_seconds + 2) / watch.every, setting.runtime_seconds / watch.every
    looks = range(round(first) - 1, round(last) + 2)
    samples = [_look(setting, watch, troubles, number * watch.every, start) for number in looks]
    return ClusterWatch(
        samples=tuple(samples),
        pools=(_POOL,),
        file_system=_FILE_SYSTEM if watch.file_system else None,
        owns_file_system=watch.owns_file_system,
        accepted_checks=frozenset(watch.accepted),
        required=watch.required,
        placement=Placement(osds=watch.data_osds, per_read=1, per_write=3),
        osd_memory_bytes=watch.osd_memory_bytes,
        options=tuple(_readings(faults)) if watch.sets_options else (),
    )


def _readings(faults: Sequence[Fault]) -> Iterator[OptionReading]:
    others = [other for fault in faults for other in fault.options]
    for reading in ("before", "after"):
        found = [other for other in others if other.reading == reading]
        yield OptionReading(
            differences=tuple(
                f"{one.where} has {one.name} {one.found} instead of {one.wanted}" for one in found if not one.unread
            ),
            problem=next((one.unread for one in found if one.unread), ""),
        )


def _look(setting: Setting, watch: Watch, troubles: Sequence[Trouble], second: float, start: int) -> ClusterSample:
    """Poll the cluster a little after that second of the measured part."""
    current = [trouble for trouble in troubles if trouble.seconds[0] <= second < trouble.seconds[1]]
    at = start + round((second + 0.2) * SECOND)
    for trouble in current:
        if trouble.silent:
            return ClusterSample(at=at, status=None, problem=trouble.silent)
    status = _HEALTHY
    for trouble in current:
        status = replace(status, **_status(trouble))
    return ClusterSample(at=at, status=status, pools=_pools(setting, watch, troubles, second + 0.2 - watch.lag))


def _status(trouble: Trouble) -> dict[str, Any]:
    servers = trouble.status.get("metadata_servers")
    if servers is None:
        return trouble.status
    return trouble.status | {"metadata_servers": tuple(MetadataServer(**server) for server in servers)}


def _pools(setting: Setting, watch: Watch, troubles: Sequence[Trouble], second: float) -> Mapping[str, PoolCounters]:
    """Return the counters at a second of the measured part; the clients begin with their ramp."""
    factor = next((trouble.counted for trouble in troubles if trouble.counted != 1), 1.0)
    done = min(max(0.0, second + setting.ramp_seconds), setting.ramp_seconds + setting.runtime_seconds)
    ios = round(done * setting.iops * setting.clients)
    volume = round(ios * _block(setting.fio) * factor)
    reads = "read" in setting.fio.pattern
    foreign = round((second - watch.foreign_since) * watch.foreign)
    written = round((second - watch.foreign_since) * watch.foreign_writes)
    others = PoolCounters(
        reads=foreign,
        writes=foreign // 10 + written,
        read_bytes=4096 * foreign,
        written_bytes=watch.foreign_bytes * written,
    )
    return {
        _POOL: PoolCounters(
            reads=ios if reads else 0,
            writes=0 if reads else ios,
            read_bytes=volume if reads else 0,
            written_bytes=0 if reads else volume,
        ),
        **({_FOREIGN: others} if second >= watch.foreign_since else {}),
        _MANAGER: PoolCounters(reads=10, writes=round(1000 + second * 100), read_bytes=0, written_bytes=0),
    }


def _block(parameters: FioParameters) -> int:
    return min(parameters.block_sizes)
