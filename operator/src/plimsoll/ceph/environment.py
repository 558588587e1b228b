"""The Ceph cluster of a measurement: `ceph` and `pool` of a result's environment.

`pool` is the layout of the data, without names, and decides whether two results are comparable. `ceph` is everything
else that may explain a difference. Both have a bounded size: counts, minimum, median and maximum instead of single
OSDs. What could not be read is absent.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, median
from typing import TypeVar

from plimsoll.api import environment as api
from plimsoll.ceph.document import parse_answer
from plimsoll.ceph.gate import HEALTH_OK
from plimsoll.ceph.osds import (
    SETTINGS,
    Osd,
    capacity_iops,
    merge_osds,
    parse_members,
    parse_osd_df,
    parse_osd_metadata,
    parse_osd_tree,
    setting_number,
)
from plimsoll.ceph.pools import (
    EC_OPTIMIZATIONS,
    CrushRule,
    ErasureCodeProfile,
    PoolDetail,
    parse_available,
    parse_crush_rules,
    parse_file_system,
    parse_pools,
    parse_profile,
)
from plimsoll.ceph.safety import Fill
from plimsoll.ceph.versions import parse_versions, version_name
from plimsoll.ceph.watch import Placement, is_muted

_Read = TypeVar("_Read")

_KINDS = 8
_CHARACTERS = 80
_FLAGS = 32
_DECIMALS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The output of Ceph's commands with `--format json`; empty for a command that failed."""

    # Each is named after its command, unless a comment names it
    versions: str = ""
    status: str = ""
    osd_metadata: str = ""
    osd_tree: str = ""
    osd_df: str = ""
    osd_dump: str = ""
    df_detail: str = ""
    pools: str = ""  # `ceph osd pool ls detail`
    crush_rules: str = ""  # `ceph osd crush rule dump`
    profiles: Mapping[str, str] = field(default_factory=dict)  # name -> `ceph osd erasure-code-profile get`
    # OSD -> option of `SETTINGS` -> `ceph config show osd.N OPTION`, which is not JSON
    settings: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    image: str = ""  # `rbd info` of one of the run's images
    file_system: str = ""  # `ceph fs get` of the run's file system
    groups: str = ""  # `ceph pg dump pgs_brief`, only of a run that takes OSDs away


class _Reading:
    """Reads outputs, and collects the problems of unreadable ones."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def of(self, parse: Callable[[str], _Read], text: str) -> _Read | None:
        """Return the parsed output; None if it is empty or unreadable."""
        try:
            return parse(text) if text else None
        except ValueError as error:
            self.problems.append(str(error)[: 2 * _CHARACTERS])
            return None


def ceph_environment(
    outputs: Outputs, *, pools: Sequence[str], access: str, options: Iterable[api.CephOption] = ()
) -> api.Environment:
    """Return `ceph` of a result's environment, and `pool` if the pools are readable. Never raises: see `unread`.

    `pools` are the run's, the data's last; `access` is `librbd`, `PVC`, `CephFS` or `rados`; `options` are the run's.
    """
    reading = _Reading()
    osds = _read_osds(reading, outputs)
    details = reading.of(parse_pools, outputs.pools) or {}
    rules = reading.of(parse_crush_rules, outputs.crush_rules) or {}
    parsed_profiles = {name: reading.of(parse_profile, text) for name, text in outputs.profiles.items()}
    profiles = {name: profile for name, profile in parsed_profiles.items() if profile}
    used = [details[name] for name in dict.fromkeys(pools) if name in details]
    ceph = api.CephDescription(
        fsid=reading.of(lambda text: parse_answer(text)["fsid"].text()[:_CHARACTERS], outputs.osd_dump),
        versions=reading.of(lambda text: _versions(text, file_system=access == "CephFS"), outputs.versions),
        osds=_osds(osds.values()),
        settings=_settings(outputs, osds),
        cluster_flags=reading.of(
            lambda text: tuple(sorted(filter(None, parse_answer(text)["flags"].text().split(",")))[:_FLAGS]),
            outputs.osd_dump,
        ),
        health_checks=reading.of(_health_checks, outputs.status) or None,
        used_ratio=reading.of(
            lambda text: round(parse_answer(text)["stats"]["total_used_raw_ratio"].number(), _DECIMALS),
            outputs.df_detail,
        ),
        pools=tuple(_described(pool, rules, profiles) for pool in used) or None,
        client_path=access,
        image=reading.of(_image, outputs.image),
        file_system=reading.of(_file_system, outputs.file_system),
        options=api.by_osds(options) or None,
        # Last, when every output has been read.
        unread=tuple(dict.fromkeys(reading.problems))[:_KINDS] or None,
    )
    if not used or len(used) < len(dict.fromkeys(pools)):
        return api.Environment(ceph=ceph)
    layout = _layout(used[-1], rules, profiles)
    if len(used) > 1:
        layout = layout.model_copy(update={"metadata": _layout(used[0], rules, profiles)})
    return api.Environment(ceph=ceph, pool=layout)


def osd_classes(outputs: Outputs) -> dict[int, str]:
    return {number: osd.device_class for number, osd in _read_osds(_Reading(), outputs).items() if osd.device_class}


def osd_memory_bytes(outputs: Outputs, pool: str) -> int | None:
    """Return the sum of the memory targets of a pool's OSDs, unknown ones with the mean; None without any."""
    used = _osds_of_pool(_Reading(), outputs, pool)
    targets = [setting_number(outputs.settings.get(number, {}), "osd_memory_target") for number in used]
    known = [target for target in targets if target]
    return round(fmean(known) * len(used)) if known else None


def placement_of(outputs: Outputs, pool: str) -> Placement:
    """Return the OSDs that a pool's rule takes, of the smallest bucket, and no more than its groups can be on."""
    reading = _Reading()
    details = (reading.of(parse_pools, outputs.pools) or {}).get(pool)
    if details is None:
        return Placement()
    fewest = min(map(len, _taken(reading, outputs, _members(reading, outputs), details)), default=0)
    return Placement(
        osds=min(fewest, details.pg_num * details.size) or None,
        # A read of an erasure-coded pool may wait for an OSD for each of its chunks.
        per_read=1 if details.type == "replicated" else details.size,
        per_write=details.size,
    )


def fill_of(outputs: Outputs, pool: str) -> Fill | None:
    """Return how full a pool's OSDs are; all of the cluster's if its own are unknown. None if Ceph did not say."""
    reading = _Reading()
    used = [osd.utilisation for osd in _osds_of_pool(reading, outputs, pool).values()]
    full = reading.of(lambda text: parse_answer(text)["full_ratio"].number(), outputs.osd_dump)
    available = (reading.of(parse_available, outputs.df_detail) or {}).get(pool)
    fullest = max((part for part in used if part is not None), default=None)
    if fullest is None or full is None or available is None:
        return None
    return Fill(fullest=fullest, full=full, available_bytes=available)


def _osds_of_pool(reading: _Reading, outputs: Outputs, pool: str) -> dict[int, Osd]:
    """Return the OSDs that may hold a pool's data; all of the cluster if its own are unknown."""
    osds = _members(reading, outputs)
    details = (reading.of(parse_pools, outputs.pools) or {}).get(pool)
    numbers = set[int]().union(*_taken(reading, outputs, osds, details)) or {*osds}
    return {number: osds[number] for number in osds if number in numbers}


def _members(reading: _Reading, outputs: Outputs) -> dict[int, Osd]:
    return {number: osd for number, osd in _read_osds(reading, outputs).items() if osd.is_in is not False}


def _taken(reading: _Reading, outputs: Outputs, osds: Mapping[int, Osd], pool: PoolDetail | None) -> list[set[int]]:
    """Return the OSDs below each bucket that a pool's rule takes, of its device class; none if they are unknown."""
    rule = (reading.of(parse_crush_rules, outputs.crush_rules) or {}).get(pool.crush_rule) if pool else None
    taken = []
    for root, device_class in rule.takes if rule else ():
        below = reading.of(partial(parse_members, root=root), outputs.osd_tree) or set()
        classed = {number for number, osd in osds.items() if not device_class or osd.device_class == device_class}
        taken.append(below & classed)
    return taken


def _read_osds(reading: _Reading, outputs: Outputs) -> dict[int, Osd]:
    return merge_osds(
        reading.of(parse_osd_metadata, outputs.osd_metadata) or {},
        reading.of(parse_osd_df, outputs.osd_df) or {},
        reading.of(parse_osd_tree, outputs.osd_tree) or {},
    )


def _versions(text: str, *, file_system: bool) -> str | dict[str, api.Counts]:
    """Return the common version of the daemons that numbers depend on, or else the versions of each kind of daemon."""
    common = parse_versions(text, file_system=file_system)
    if len(common) == 1:
        return version_name(common[0])[:_CHARACTERS]
    daemons = {}
    for kind, versions in parse_answer(text).items():
        if kind != "overall":
            counts = Counter({version_name(name): count.count() for name, count in versions.items()})
            daemons[kind[:_CHARACTERS]] = _most_frequent(counts)
    return {kind: counts for kind, counts in [*daemons.items()][:_KINDS] if counts}


def _osds(osds: Collection[Osd]) -> api.OsdsDescription | None:
    if not osds:
        return None
    return api.OsdsDescription(
        count=len(osds),
        up=_number_of(osd.is_up for osd in osds),
        members=_number_of(osd.is_in for osd in osds),
        hosts=len({osd.host for osd in osds if osd.host}) or None,
        failure_hosts=len({osd.bucket for osd in osds if osd.bucket}) or None,
        device_classes=_counts(osd.device_class for osd in osds),
        devices=_counts(osd.device for osd in osds),
        rotational=_number_of(osd.rotational for osd in osds),
        object_stores=_counts(osd.object_store for osd in osds),
        kernels=_counts(osd.kernel for osd in osds),
        processors=_counts(osd.processor for osd in osds),
        size_bytes=_quantiles(osd.size_bytes for osd in osds),
        utilisation=_quantiles(osd.utilisation for osd in osds),
        placement_groups=_quantiles(osd.placement_groups for osd in osds),
    )


def _settings(outputs: Outputs, osds: Mapping[int, Osd]) -> api.OsdSettingsDescription | None:
    """Return the OSDs' settings, in which two clusters with the same hardware may differ."""
    shown = {number: outputs.settings.get(number, {}) for number in osds}
    counts = {name: _counts(settings.get(name) for settings in shown.values()) for name in SETTINGS}
    # The capacities that mClock assumes, as far as known, by device class.
    capacities: dict[str, list[float]] = {}
    for number, osd in osds.items():
        if (capacity := capacity_iops(osd, shown[number])) is not None:
            capacities.setdefault(osd.device_class or "unknown", []).append(capacity)
    described = {
        name[:_CHARACTERS]: api.CapacityDescription(
            **spread.model_dump(), equal=spread.min == spread.max, osds=len(capacities[name])
        )
        for name in sorted(capacities)[:_KINDS]
        if (spread := _quantiles(capacities[name]))
    }
    description = api.OsdSettingsDescription(
        mclock_profiles=counts["osd_mclock_profile"],
        queues=counts["osd_op_queue"],
        cluster_modes=counts["ms_cluster_mode"],
        service_modes=counts["ms_service_mode"],
        capacity_iops=described or None,
        memory_target_bytes=_quantiles(setting_number(settings, "osd_memory_target") for settings in shown.values()),
    )
    return description if description.document() else None


def _health_checks(text: str) -> dict[str, str]:
    """Return the failing health checks of `ceph status`: name -> severity, with a remark if it is muted."""
    checks = sorted(parse_answer(text)["health"]["checks"].items())
    return {
        name[:_CHARACTERS]: f"{severity[:_CHARACTERS]}{' (muted)' if is_muted(check) else ''}"
        for name, check in checks[: 4 * _KINDS]
        if (severity := check["severity"].text()) != HEALTH_OK
    }


def _described(
    pool: PoolDetail, rules: Mapping[int, CrushRule], profiles: Mapping[str, ErasureCodeProfile]
) -> api.PoolDescription:
    options = {name[:_CHARACTERS]: value[:_CHARACTERS] for name, value in sorted(pool.options.items())[: 4 * _KINDS]}
    return api.PoolDescription(
        **_layout(pool, rules, profiles).model_dump(by_alias=False),
        name=pool.name[: 2 * _CHARACTERS],
        min_size=pool.min_size,
        pg_num_target=pool.pg_num_target,
        pgp_num=pool.pgp_num,
        autoscale_mode=pool.autoscale_mode[:_CHARACTERS],
        flags=tuple(flag[:_CHARACTERS] for flag in sorted(pool.flags)[:_FLAGS]),
        options=options or None,
        applications=tuple(name[:_CHARACTERS] for name in pool.applications[:_KINDS]),
    )


def _layout(
    pool: PoolDetail, rules: Mapping[int, CrushRule], profiles: Mapping[str, ErasureCodeProfile]
) -> api.PoolLayout:
    rule, profile = rules.get(pool.crush_rule), profiles.get(pool.erasure_code_profile)
    return api.PoolLayout(
        type=pool.type,
        size=None if profile else pool.size,
        data_chunks=profile.data_chunks if profile else None,
        coding_chunks=profile.coding_chunks if profile else None,
        plugin=profile.plugin[:_CHARACTERS] or None if profile else None,
        technique=profile.technique[:_CHARACTERS] or None if profile else None,
        stripe_unit=pool.stripe_width // profile.data_chunks or None if profile and profile.data_chunks else None,
        ec_optimizations=EC_OPTIMIZATIONS in pool.flags or None,
        failure_domain=(rule.failure_domain if rule else "")[:_CHARACTERS] or None,
        device_class=(rule.device_class if rule else "")[:_CHARACTERS] or None,
        # `default` is the root of every new cluster.
        crush_root=rule.root[:_CHARACTERS] or None if rule and rule.root != "default" else None,
        pg_num=pool.pg_num,
        compression=pool.options.get("compression_mode", "")[:_CHARACTERS] or None,
    )


def _image(text: str) -> api.ImageDescription:
    image = parse_answer(text)
    features = [feature.text()[:_CHARACTERS] for feature in image["features"].elements()]
    return api.ImageDescription(object_size=image["object_size"].count(), features=tuple(features[:_FLAGS]))


def _file_system(text: str) -> api.FileSystemDescription:
    detail = parse_file_system(text)
    return api.FileSystemDescription(
        name=detail.name[: 2 * _CHARACTERS], metadata_servers=detail.servers, data_pools=len(detail.data_pools)
    )


def _number_of(flags: Iterable[bool | None]) -> int | None:
    reported = [flag for flag in flags if flag is not None]
    return sum(reported) if reported else None


def _counts(words: Iterable[str | None]) -> api.Counts | None:
    return _most_frequent(Counter(filter(None, words)))


def _most_frequent(words: Counter[str]) -> api.Counts | None:
    """Return the counts of the most frequent words, and the sum of all `others`."""
    counts: api.Counts = {}
    for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0])):
        key = word[:_CHARACTERS] if word[:_CHARACTERS] in counts or len(counts) < _KINDS else "others"
        counts[key] = count + counts.get(key, 0)
    return counts or None


def _quantiles(values: Iterable[float | None]) -> api.Quantiles | None:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    return api.Quantiles(min=_rounded(min(numbers)), median=_rounded(median(numbers)), max=_rounded(max(numbers)))


def _rounded(value: float) -> int | float:
    return int(value) if value == int(value) else round(value, _DECIMALS)
