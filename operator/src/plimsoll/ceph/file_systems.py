"""A CephFS file system and its metadata servers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from plimsoll.ceph.document import Node
from plimsoll.ceph.pools import PoolDetail
from plimsoll.ceph.watch import ClusterStatus, FileSystemDetail, MetadataServer

_FOLLOWER = "up:standby-replay"
"""`ceph status` lists it with the rank of the server that it follows."""
_ACTIVE = "up:active"
_MAX_WORDS = 80

EXIT_PURGING = 3
"""Exit code of `plimsoll teardown` if all that is left to do is to wait for Ceph to purge deleted volumes."""


def parse_file_system(fs_get_text: str) -> FileSystemDetail:
    """Read `ceph fs get`; ValueError with the field."""
    document = Node.parse(fs_get_text)
    servers = document["mdsmap"]
    return FileSystemDetail(
        number=document["id"].count(),
        name=servers["fs_name"].text(),
        servers=servers["max_mds"].count(),
        metadata_pool=servers["metadata_pool"].count(),
        data_pools=tuple(pool.count() for pool in servers["data_pools"].elements()),
    )


def has_servers(fs_get_text: str) -> bool:
    """Read whether a metadata server has a rank in `ceph fs get`, be it active or about to be.

    Raises:
        ValueError: with the field that cannot be read.

    """
    return any(True for _ in Node.parse(fs_get_text)["mdsmap"]["up"].items())


def wrong_pools(found: FileSystemDetail, pools: Sequence[PoolDetail]) -> Iterator[str]:
    """Yield which of a run's pools, of which the first one is for metadata, the file system does not use as such."""
    metadata, *data = pools
    if metadata.number != found.metadata_pool:
        yield f"pool {metadata.name} is not the metadata pool of file system {found.name}"
    for pool in data:
        if pool.number not in found.data_pools:
            yield f"pool {pool.name} is not a data pool of file system {found.name}"


def servers_of(status: ClusterStatus, found: FileSystemDetail) -> tuple[MetadataServer, ...]:
    """Return the metadata servers of a file system that have a rank, without those that only follow one of them."""
    return tuple(
        server
        for server in status.metadata_servers
        if server.file_system == found.number and not server.state.startswith(_FOLLOWER)
    )


def inactive_servers(status: ClusterStatus, found: FileSystemDetail) -> int:
    """Return how many of the wanted metadata servers are not active."""
    active = sum(server.state == _ACTIVE for server in servers_of(status, found))
    return max(0, found.servers - active)


def server_problems(status: ClusterStatus, found: FileSystemDetail | None) -> Iterator[str]:
    """Yield why a file system cannot be measured now; nothing if it can, or if there is none."""
    if found is None or not inactive_servers(status, found):
        return
    states = Counter(server.state[:_MAX_WORDS] for server in servers_of(status, found) if server.state != _ACTIVE)
    others = f" ({states_text(states)})" if states else ""
    yield (
        f"{inactive_servers(status, found)} of {found.servers} metadata servers of file system {found.name} are not "
        f"active{others}; wait until they are, or see `ceph fs status {found.name}`"
    )


def states_text(states: Mapping[str, int]) -> str:
    """Return counted states of metadata servers as text: `1 up:replay`."""
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
