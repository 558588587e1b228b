"""Where a Ceph cluster's numbers were measured: what stands under `ceph` and `pool` of a result's environment.

`pool` decides whether two results may be compared: it tells how data is laid out, and has no names in it. `ceph` is
everything else that may explain a difference. Both are of bounded size whatever the cluster's: of hundreds of OSDs
there are counts, and least, median and greatest values. What could not be read is left out.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from pydantic import JsonValue

from plimsoll.ceph.document import Node
from plimsoll.ceph.osds import (
    Osd,
    OsdSettings,
    merge_osds,
    parse_config_dump,
    parse_config_show,
    parse_osd_df,
    parse_osd_metadata,
    parse_osd_tree,
    settings_of,
)
from plimsoll.ceph.pools import (
    CrushRule,
    ErasureCodeProfile,
    PoolDetail,
    parse_crush_rules,
    parse_pools,
    parse_profile,
)

Json = dict[str, JsonValue]
_Read = TypeVar("_Read")

_KINDS = 8
_CHARACTERS = 80
_FLAGS = 32
_DECIMALS = 4
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What Ceph's commands printed, each with `--format json`; empty for one that could not be run.

    Attributes:
        versions: `ceph versions`; likewise `osd_metadata`, `osd_tree`, `osd_df`, `osd_dump`, `df_detail` and
            `config_dump`.
        pools: `ceph osd pool ls detail`.
        crush_rules: `ceph osd crush rule dump`.
        profiles: name -> `ceph osd erasure-code-profile get`.
        configs: OSD -> `ceph config show-with-defaults osd.N`; some of them are enough, since each is asked for alone.
        image: `rbd info` of one of the run's images.

    """

    versions: str = ""
    osd_metadata: str = ""
    osd_tree: str = ""
    osd_df: str = ""
    osd_dump: str = ""
    df_detail: str = ""
    pools: str = ""
    crush_rules: str = ""
    profiles: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[int, str] = field(default_factory=dict)
    config_dump: str = ""
    image: str = ""


class _Reading:
    """Reads outputs, and keeps what is wrong with those that cannot be read."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def of(self, parse: Callable[[str], _Read], text: str) -> _Read | None:
        """Return what an output says; None if there is none, or it is not what the command prints."""
        try:
            return parse(text) if text else None
        except ValueError as error:
            self.problems.append(str(error)[: 2 * _CHARACTERS])
            return None


def ceph_environment(outputs: Outputs, *, pools: Sequence[str], access: str, client_nodes: Collection[str]) -> Json:
    """Return `ceph`, and `pool` if the pools could be read, for a result's environment. Never raises.

    `pools` are those that the run's I/O goes to, the one with the data last; `access` is how clients reach it:
    `librbd`, `PVC` or `rados`; `client_nodes` are the names of the nodes that they run on. What is wrong with outputs
    that cannot be read stands under `unread`.
    """
    reading = _Reading()
    osds = _read_osds(reading, outputs)
    details = reading.of(parse_pools, outputs.pools) or {}
    rules = reading.of(parse_crush_rules, outputs.crush_rules) or {}
    read = {name: reading.of(parse_profile, text) for name, text in outputs.profiles.items()}
    profiles = {name: profile for name, profile in read.items() if profile}
    used = [details[name] for name in dict.fromkeys(pools) if name in details]
    ceph: dict[str, JsonValue] = {
        "fsid": reading.of(_fsid, outputs.osd_dump),
        "versions": reading.of(_versions, outputs.versions),
        "osds": _osds(osds.values()),
        "settings": _settings(reading, outputs, osds),
        "clusterFlags": reading.of(_cluster_flags, outputs.osd_dump),
        "usedRatio": reading.of(_used_ratio, outputs.df_detail),
        "pools": [_described(pool, rules, profiles) for pool in used] or None,
        "clientPath": access,
        "image": reading.of(_image, outputs.image),
        "clientsOnStorageNodes": clients_on_storage_nodes(client_nodes, osds.values()),
    }
    if unread := [*dict.fromkeys(reading.problems)][:_KINDS]:
        ceph["unread"] = [*unread]
    known: Json = {"ceph": _known(ceph)}
    if used and len(used) == len(dict.fromkeys(pools)):
        known["pool"] = pool_layout(used, rules, profiles)
    return known


def osds_of(outputs: Outputs) -> dict[int, Osd]:
    """Return all OSDs, by number, from the commands that tell of them and could be read."""
    return _read_osds(_Reading(), outputs)


def osd_classes(outputs: Outputs) -> dict[int, str]:
    """Return the device class of each OSD that has one, as `measure.intake.TrialFacts` wants it."""
    return {number: osd.device_class for number, osd in osds_of(outputs).items() if osd.device_class}


def _read_osds(reading: _Reading, outputs: Outputs) -> dict[int, Osd]:
    return merge_osds(
        reading.of(parse_osd_metadata, outputs.osd_metadata) or {},
        reading.of(parse_osd_df, outputs.osd_df) or {},
        reading.of(parse_osd_tree, outputs.osd_tree) or {},
    )


def pool_layout(
    pools: Sequence[PoolDetail], rules: Mapping[int, CrushRule], profiles: Mapping[str, ErasureCodeProfile]
) -> Json:
    """Return how the run's data is laid out, without any names; with a pool for metadata, that one's layout too."""
    layout = _layout(pools[-1], rules, profiles)
    return {**layout, "metadata": _layout(pools[0], rules, profiles)} if len(pools) > 1 else layout


def clients_on_storage_nodes(nodes: Collection[str], osds: Iterable[Osd]) -> JsonValue:
    """Return whether a client ran on a node that also ran an OSD; `unknown` if the names cannot tell.

    A node and a host are the same if their names are, up to the first dot. Two sets of names that have none in common
    may be names of two kinds: an OSD in a container often knows the container's name only. Then only OSDs whose host
    and CRUSH bucket have the same name are believed to know where they are.
    """
    clients = {_short(name) for name in nodes if name}
    known = list(osds)
    if not clients or not known:
        return _UNKNOWN
    if clients & {_short(name) for osd in known for name in (osd.host, osd.bucket) if name}:
        return True
    return False if all(osd.host and _short(osd.host) == _short(osd.bucket) for osd in known) else _UNKNOWN


def _short(name: str) -> str:
    return name.partition(".")[0].lower()


def _versions(text: str) -> JsonValue:
    """Return the one version of all daemons, or which daemons have which."""
    daemons = {
        kind: {_version(name): count.count() for name, count in found.items()}
        for kind, found in Node.parse(text).items()
    }
    overall = daemons.pop("overall", {})
    if len(overall) == 1:
        return next(iter(overall))
    return {kind[:_CHARACTERS]: _counts(Counter(found)) for kind, found in [*daemons.items()][:_KINDS]}


def _version(text: str) -> str:
    """Shorten `ceph version 18.2.7 (<commit>) reef (stable)` to `18.2.7 reef`, as long as it looks like that."""
    words = text.split()
    shortened = f"{words[2]} {words[4]}" if words[:2] == ["ceph", "version"] and len(words) > 4 else text  # noqa: PLR2004  # the fifth word is there
    return shortened[:_CHARACTERS]


def _osds(osds: Collection[Osd]) -> JsonValue:
    if not osds:
        return None
    return _known(
        {
            "count": len(osds),
            "up": _number_of(osd.is_up for osd in osds),
            "in": _number_of(osd.is_in for osd in osds),
            "hosts": len({osd.host for osd in osds if osd.host}) or None,
            "failureHosts": len({osd.bucket for osd in osds if osd.bucket}) or None,
            "deviceClasses": _counts(Counter(osd.device_class for osd in osds if osd.device_class)),
            "devices": _counts(Counter(osd.device for osd in osds if osd.device)),
            "rotational": _number_of(osd.rotational for osd in osds),
            "objectStores": _counts(Counter(osd.object_store for osd in osds if osd.object_store)),
            "kernels": _counts(Counter(osd.kernel for osd in osds if osd.kernel)),
            "processors": _counts(Counter(osd.processor for osd in osds if osd.processor)),
            "sizeBytes": _spread(osd.size_bytes for osd in osds),
            "utilisation": _spread(osd.utilisation for osd in osds),
            "placementGroups": _spread(osd.placement_groups for osd in osds),
        }
    )


def _settings(reading: _Reading, outputs: Outputs, osds: Mapping[int, Osd]) -> JsonValue:
    """Tell how the OSDs are set: that is what two clusters of the same hardware differ in."""
    kept = reading.of(parse_config_dump, outputs.config_dump) or {}
    shown = {number: reading.of(parse_config_show, text) or {} for number, text in outputs.configs.items()}
    every = {number: settings_of(osd, shown.get(number, {}), kept) for number, osd in osds.items()}

    def counts(value: Callable[[OsdSettings], str | None]) -> JsonValue:
        return _counts(Counter(known for one in every.values() if (known := value(one)) is not None))

    return (
        _known(
            {
                "mclockProfiles": counts(lambda one: one.profile),
                "queues": counts(lambda one: one.queue),
                "clusterModes": counts(lambda one: one.cluster_mode),
                "serviceModes": counts(lambda one: one.service_mode),
                "capacityIops": _known(dict(_capacities(osds, every))) or None,
                "memoryTargetBytes": _spread(one.memory_target_bytes for one in every.values()),
            }
        )
        or None
    )


def _capacities(osds: Mapping[int, Osd], every: Mapping[int, OsdSettings]) -> Iterator[tuple[str, JsonValue]]:
    """Tell for each device class what mClock takes its OSDs to be capable of, and whether that is the same.

    With the number of OSDs of which it is known: what was never set is Ceph's default, and only the OSD itself tells.
    """
    classes = sorted({osd.device_class or _UNKNOWN for osd in osds.values()})
    for name in classes[:_KINDS]:
        mine = [every[number] for number, osd in osds.items() if (osd.device_class or _UNKNOWN) == name]
        known = [one.capacity_iops for one in mine if one.capacity_iops is not None]
        spread = _spread(known)
        if isinstance(spread, dict):
            equal = spread["min"] == spread["max"]
            yield name[:_CHARACTERS], {**spread, "equal": equal, "osds": len(known)}


def _cluster_flags(text: str) -> JsonValue:
    """Return the flags that are set for all pools, such as `noscrub`."""
    return [*sorted(flag for flag in Node.parse(text)["flags"].text().split(",") if flag)[:_FLAGS]]


def _used_ratio(text: str) -> JsonValue:
    return round(Node.parse(text)["stats"]["total_used_raw_ratio"].number(), _DECIMALS)


def _described(
    pool: PoolDetail, rules: Mapping[int, CrushRule], profiles: Mapping[str, ErasureCodeProfile]
) -> JsonValue:
    options: Json = {
        name[:_CHARACTERS]: value[:_CHARACTERS] for name, value in sorted(pool.options.items())[: 4 * _KINDS]
    }
    return _known(
        {
            "name": pool.name[: 2 * _CHARACTERS],
            **_layout(pool, rules, profiles),
            "minSize": pool.min_size,
            "pgNumTarget": pool.pg_num_target,
            "pgpNum": pool.pgp_num,
            "autoscaleMode": pool.autoscale_mode[:_CHARACTERS],
            "flags": [flag[:_CHARACTERS] for flag in sorted(pool.flags)[:_FLAGS]],
            "options": options or None,
            "applications": [name[:_CHARACTERS] for name in pool.applications[:_KINDS]],
        }
    )


def _layout(pool: PoolDetail, rules: Mapping[int, CrushRule], profiles: Mapping[str, ErasureCodeProfile]) -> Json:
    rule, profile = rules.get(pool.crush_rule), profiles.get(pool.erasure_code_profile)
    return _known(
        {
            "type": pool.type,
            "size": None if profile else pool.size,
            "dataChunks": profile.data_chunks if profile else None,
            "codingChunks": profile.coding_chunks if profile else None,
            "failureDomain": (rule.failure_domain if rule else "")[:_CHARACTERS] or None,
            "deviceClass": (rule.device_class if rule else "")[:_CHARACTERS] or None,
            "pgNum": pool.pg_num,
            "compression": pool.options.get("compression_mode", "")[:_CHARACTERS] or None,
        }
    )


def _fsid(text: str) -> JsonValue:
    return Node.parse(text)["fsid"].text()[:_CHARACTERS]


def _image(text: str) -> JsonValue:
    image = Node.parse(text)
    features: list[JsonValue] = [feature.text()[:_CHARACTERS] for feature in image["features"].elements()]
    return _known({"objectSize": image["object_size"].count(), "features": features[:_FLAGS]})


def _number_of(flags: Iterable[bool | None]) -> int | None:
    known = [flag for flag in flags if flag is not None]
    return sum(known) if known else None


def _counts(found: Counter[str]) -> JsonValue:
    """Return how often each word is there, the most frequent ones of many."""
    counts: Json = {}
    for word, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        key = word[:_CHARACTERS] if word[:_CHARACTERS] in counts or len(counts) < _KINDS else "others"
        earlier = counts.get(key, 0)
        counts[key] = count + (earlier if isinstance(earlier, int) else 0)
    return counts or None


def _spread(values: Iterable[float | None]) -> JsonValue:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"min": _rounded(min(known)), "median": _rounded(median(known)), "max": _rounded(max(known))}


def _rounded(value: float) -> int | float:
    return int(value) if value == int(value) else round(value, _DECIMALS)


def _known(document: Mapping[str, JsonValue | None]) -> Json:
    return {key: value for key, value in document.items() if value is not None}
