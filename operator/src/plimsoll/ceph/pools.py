"""The layout and the counters of pools."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.ceph.document import parse_answer
from plimsoll.ceph.watch import ClusterStatus, FileSystemDetail, MetadataServer, PoolCounters

EXIT_PURGING = 3  # of `plimsoll teardown`, if all that is left is to wait for Ceph to purge deleted volumes
SCRUB_FLAGS = ("noscrub", "nodeep-scrub")  # the flags of a pool that pause its scrubs
EC_OPTIMIZATIONS = "ec_optimizations"  # flag of a pool with `allow_ec_optimizations`. Source: Ceph 20
_TYPES = {1: "replicated", 3: "erasure"}
ACTIVE = "up:active"  # the state of a metadata server that serves


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDetail:
    """A pool of `ceph osd pool ls detail`."""

    number: int  # Ceph's own, never reused for another pool
    name: str
    type: str  # `replicated` or `erasure`
    size: int  # replicas, or all chunks of an erasure-coded pool
    min_size: int
    pg_num: int
    pg_num_target: int  # final value of a changing `pg_num`; of `pgp_num`, `pgp_num_target`
    pgp_num: int
    pgp_num_target: int
    autoscale_mode: str  # `on`, `off` or `warn`
    flags: frozenset[str]  # `noscrub`, `ec_overwrites`, `creating`, `bulk`, ...
    options: Mapping[str, str]  # settings of this pool only: `compression_mode`, `pg_num_max`, ...; values as strings
    crush_rule: int  # the rule's number
    applications: tuple[str, ...]
    erasure_code_profile: str  # the profile's name; empty for a replicated pool
    stripe_width: int  # bytes of data in a stripe, over all data chunks; 0 for a replicated pool
    # Whether its groups are active only with copies in several parts of the cluster, such as sites (stretch mode)
    is_stretched: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether no placement group is still to be split or merged."""
        return self.pg_num == self.pg_num_target == self.pgp_num == self.pgp_num_target


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCodeProfile:
    """A profile of `ceph osd erasure-code-profile get`. Empty strings mean Ceph's defaults."""

    data_chunks: int
    coding_chunks: int
    plugin: str
    technique: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrushRule:
    """A rule of `ceph osd crush rule dump`."""

    number: int
    # Type of the buckets over which replicas or chunks are spread, such as `host`; empty if the rule chooses in more
    # than one step
    failure_domain: str
    # Name of each bucket whose OSDs it uses, and the class of its devices; empty for all classes
    takes: tuple[tuple[str, str], ...]

    @property
    def root(self) -> str:
        """Name of the only bucket whose OSDs it uses; empty if there are several."""
        return self.takes[0][0] if len(self.takes) == 1 else ""

    @property
    def device_class(self) -> str:
        """The class of its devices; empty for all classes, or if it uses several buckets."""
        return self.takes[0][1] if len(self.takes) == 1 else ""


def parse_counters(df_detail_text: str) -> dict[str, PoolCounters]:
    """Read `ceph df detail`: name of the pool -> counters. All parsers raise ValueError with the field."""
    counters = {}
    for pool in parse_answer(df_detail_text)["pools"].elements():
        stats = pool["stats"]
        counters[pool["name"].text()] = PoolCounters(
            reads=stats["rd"].count(),
            writes=stats["wr"].count(),
            read_bytes=stats["rd_bytes"].count(),
            written_bytes=stats["wr_bytes"].count(),
        )
    return counters


def parse_available(df_detail_text: str) -> dict[str, int]:
    """Read `ceph df detail`: name of the pool -> MAX AVAIL, the data that it can take until an OSD is full."""
    pools = parse_answer(df_detail_text)["pools"].elements()
    return {pool["name"].text(): pool["stats"]["max_avail"].count() for pool in pools}


def parse_pools(osd_pool_ls_detail_text: str) -> dict[str, PoolDetail]:
    """Read `ceph osd pool ls detail`: name of the pool -> pool."""
    pools = (
        PoolDetail(
            number=pool["pool_id"].count(),
            name=pool["pool_name"].text(),
            type=_TYPES.get(pool["type"].count(), str(pool["type"].count())),
            size=pool["size"].count(),
            min_size=pool["min_size"].count(),
            pg_num=pool["pg_num"].count(),
            pg_num_target=pool["pg_num_target"].count(),
            pgp_num=pool["pg_placement_num"].count(),
            pgp_num_target=pool["pg_placement_num_target"].count(),
            autoscale_mode=pool["pg_autoscale_mode"].text(),
            flags=frozenset(filter(None, pool["flags_names"].text().split(","))),
            options={name: str(option.value) for name, option in pool["options"].items()},
            crush_rule=pool["crush_rule"].count(),
            applications=tuple(sorted(name for name, _ in pool["application_metadata"].items())),
            erasure_code_profile=pool["erasure_code_profile"].text(),
            stripe_width=width.count() if (width := pool.get("stripe_width")) else 0,
            is_stretched=bool(parts.count()) if (parts := pool.get("peering_crush_bucket_count")) else False,
        )
        for pool in parse_answer(osd_pool_ls_detail_text).elements()
    )
    return {pool.name: pool for pool in pools}


def parse_holders(pg_dump_text: str, pool: PoolDetail) -> frozenset[int]:
    """Read `ceph pg dump pgs_brief`: the OSDs that hold placement groups of a pool."""
    groups = parse_answer(pg_dump_text)["pg_stats"].elements()
    of_pool = (group for group in groups if group["pgid"].text().startswith(f"{pool.number}."))
    return frozenset(osd.count() for group in of_pool for osd in group["acting"].elements())


def parse_profile(text: str) -> ErasureCodeProfile:
    """Read `ceph osd erasure-code-profile get`."""
    document = parse_answer(text)
    words = {key: value.text() for key, value in document.items()}
    return ErasureCodeProfile(
        data_chunks=document["k"].unquoted().count(),
        coding_chunks=document["m"].unquoted().count(),
        plugin=words.get("plugin", ""),
        technique=words.get("technique", ""),
    )


def parse_crush_rules(text: str) -> dict[int, CrushRule]:
    """Read `ceph osd crush rule dump`: number of the rule -> rule."""
    rules = {}
    for rule in parse_answer(text).elements():
        number, steps = rule["rule_id"].count(), rule["steps"].elements()
        taken = [step["item_name"].text() for step in steps if step["op"].text() == "take"]
        # CRUSH keeps a shadow tree `default~ssd` for each device class.
        takes = tuple((root, device_class) for root, _, device_class in (name.partition("~") for name in taken))
        chosen = [step["type"].text() for step in steps if step["op"].text().startswith("choose")]
        rules[number] = CrushRule(number=number, failure_domain=chosen[0] if len(chosen) == 1 else "", takes=takes)
    return rules


def parse_file_system(fs_get_text: str) -> FileSystemDetail:
    """Read `ceph fs get`; ValueError with the field."""
    document = parse_answer(fs_get_text)
    servers = document["mdsmap"]
    return FileSystemDetail(
        number=document["id"].count(),
        name=servers["fs_name"].text(),
        servers=servers["max_mds"].count(),
        metadata_pool=servers["metadata_pool"].count(),
        data_pools=tuple(pool.count() for pool in servers["data_pools"].elements()),
    )


def has_servers(fs_get_text: str) -> bool:
    """Read whether a metadata server has a rank in `ceph fs get`, be it active or about to be."""
    return any(True for _ in parse_answer(fs_get_text)["mdsmap"]["up"].items())


def wrong_pools(file_system: FileSystemDetail, pools: Sequence[PoolDetail]) -> Iterator[str]:
    """Yield the run's pools that the file system does not use; the first pool is for metadata, the others for data."""
    metadata, *data = pools
    if metadata.number != file_system.metadata_pool:
        yield f"pool {metadata.name} is not the metadata pool of file system {file_system.name}"
    for pool in data:
        if pool.number not in file_system.data_pools:
            yield f"pool {pool.name} is not a data pool of file system {file_system.name}"


def servers_of(status: ClusterStatus, file_system: FileSystemDetail) -> tuple[MetadataServer, ...]:
    """Return a file system's metadata servers with a rank, without those that only follow one with the same rank."""
    return tuple(
        server
        for server in status.metadata_servers
        if server.file_system == file_system.number and not server.state.startswith("up:standby-replay")
    )


def inactive_servers(status: ClusterStatus, file_system: FileSystemDetail) -> int:
    """Return how many of the wanted metadata servers are not active."""
    return max(0, file_system.servers - sum(server.state == ACTIVE for server in servers_of(status, file_system)))
