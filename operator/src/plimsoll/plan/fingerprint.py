"""The fingerprint of a result: what was measured, where and how.

The identity decides whether two results are comparable; the context is everything else that may explain a difference.
Each has a SHA-256 digest of its canonical JSON: sorted keys, no spaces, UTF-8. Unknown values are absent, never null,
so that the digests do not depend on where a result was stored.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from pydantic import JsonValue

from plimsoll import __version__
from plimsoll.api.environment import Environment, StorageClassDescription, by_osds
from plimsoll.api.model import Model
from plimsoll.api.result import Fingerprint
from plimsoll.api.surroundings import OsdCaches
from plimsoll.measure.compare.values import Pair
from plimsoll.plan.document import Plan, Point, base_name, file_system_name
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

_STORAGE_CLASS_IDENTITY = ("name", "provisioner", "parameters", "mountOptions")
_PREPARE_IDENTITY = {"per_trial", "prefill", "precondition", "discard", "drop_caches", "fill_percent"}
_IDENTITY_FACTS = ("tools", "dataSetBytes", "storageClass", "pool")  # at least in part; the rest is context
DROPPED_IN_PART = "DroppedInPart"  # value of `osdCaches` if OSDs dropped their caches before some trials only
Json = dict[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between two fingerprints."""

    part: Literal["identity", "context"]
    key: str  # path of the value, such as `volume.size`
    baseline: JsonValue  # None if absent
    candidate: JsonValue  # None if absent


def fingerprint(
    plan: Plan, point: Point, environment: Environment, *, osd_caches: Sequence[OsdCaches] = ()
) -> Fingerprint:
    """Return the fingerprint of a point's numbers; `osd_caches` are the trials', if the storage is known to be Ceph."""
    merged = environment.merged(plan.environment)
    # An administrator may allow it in between.
    dropped = {drop.reason is None for drop in osd_caches}
    caches = DROPPED_IN_PART if len(dropped) > 1 else "Dropped" if True in dropped else "Kept" if dropped else None
    identity = _without_nulls({**_identity(plan, point, merged), "osdCaches": caches})
    others: Json = {name: versions for name, versions in merged.tool_versions().items() if name != point.tool}
    context = _without_nulls(
        {
            "plimsoll": __version__,
            "seed": plan.seed,
            "repetitions": plan.repetitions,
            "runClients": plan.clients,
            "runnerImage": plan.runner_image or None,
            "settleSeconds": plan.prepare.settle_seconds,
            "gates": _dumped(plan.gates),
            "networkBytesPerSecond": plan.network_bytes_per_second,
            **{name: value for name, value in merged.document().items() if name not in _IDENTITY_FACTS},
            "otherTools": others or None,
            "search": _dumped(point.line, include={"start", "limit", "precision_percent"}) if point.line else None,
            "storageClass": _storage_class(merged, identity=False),
        }
    )
    digests = {"identity_sha256": digest(identity), "context_sha256": digest(context)}
    return Fingerprint(identity=identity, context=context, **digests)


def differences(baseline: Fingerprint, candidate: Fingerprint) -> list[Difference]:
    """Return the differences between two fingerprints, the identity first, by key. Lists are compared as a whole."""
    parts: tuple[Literal["identity", "context"], ...] = ("identity", "context")
    different: list[Difference] = []
    for part in parts:
        ours, theirs = dict(leaves(getattr(baseline, part))), dict(leaves(getattr(candidate, part)))
        different += [
            Difference(part=part, key=key, baseline=ours.get(key), candidate=theirs.get(key))
            for key in sorted({*ours, *theirs})
            if ours.get(key) != theirs.get(key)
        ]
    return different


def digest(part: Mapping[str, JsonValue]) -> str:
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def leaves(document: Mapping[str, JsonValue], path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield the path and the value of every leaf; an empty mapping is a leaf."""
    for key, value in document.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value:
            yield from leaves(value, here)
        else:
            yield here, value


def _identity(plan: Plan, point: Point, environment: Environment) -> Json:
    tool, ceph = TOOLS[point.tool], environment.ceph
    # Credentials do not change what is measured.
    credentials = tool.parameters.credentials
    # The layout read back from Ceph was measured. Without it, the requested layouts must differ.
    requested = plan.ceph.made if plan.ceph is not None else None
    pool = environment.pool.document() if environment.pool else _dumped(requested) if requested is not None else None
    # The options with their values as Ceph stores them, if these are known.
    options = (ceph.options if ceph else None) or by_osds(plan.ceph.options if plan.ceph else ())
    identity: Json = {
        "tool": point.tool,
        "parameters": {name: value for name, value in point.parameters.items() if name not in credentials},
        "toolVersions": environment.tool_versions().get(point.tool),
        "clients": point.clients,
        "runtimeSeconds": point.runtime_seconds,
        "rampSeconds": point.ramp_seconds,
        "volume": _dumped(plan.volume) if plan.volume else None,
        "prepare": _dumped(plan.prepare, include=_PREPARE_IDENTITY),
        # Of points whose own parameters do not say it: fio of another workload has filled their data set.
        "dataContent": plan.data_content.model_dump(exclude_defaults=True) or None,
        "dataSetBytes": environment.data_set_bytes.document() if environment.data_set_bytes else None,
        "storageClass": _nameless(plan, _storage_class(environment, identity=True)),
        "pool": pool,
        "cephOptions": {who: {**named} for who, named in options.items()} or None,
    }
    if plan.servers is not None and tool.target is TargetKind.PEER:
        identity["servers"] = {name: value for name, value in plan.servers.model_dump(mode="json").items() if value}
    if ceph is not None and ceph.file_system is not None:
        described = ceph.file_system
        identity["fileSystem"] = {"metadataServers": described.metadata_servers, "dataPools": described.data_pools}
    if point.disturb is not None:
        identity["disturb"] = _dumped(point.disturb)
    if point.line is not None:
        # The goal of a search; its method is context.
        objectives: Json = {each.percentile: each.latency for each in point.line.objectives}
        identity["line"] = {"vary": point.line.vary.value, "latency": objectives}
    return identity


def _storage_class(environment: Environment, *, identity: bool) -> JsonValue:
    """Return the identity or the context of a StorageClass; a bare name is identity."""
    storage_class = environment.storage_class
    if not isinstance(storage_class, StorageClassDescription):
        return storage_class if identity else None
    document = storage_class.document()
    return {key: value for key, value in document.items() if (key in _STORAGE_CLASS_IDENTITY) is identity} or None


def _nameless(plan: Plan, value: JsonValue) -> JsonValue:
    """Return a part of a StorageClass without names derived from the run, which are unique."""
    if plan.ceph is None:
        return value
    if isinstance(value, dict):
        return {key: _nameless(plan, part) for key, part in value.items()}
    names = (base_name(plan.run.name, plan.run.uid), file_system_name(plan.run.name, plan.run.uid))
    return None if isinstance(value, str) and any(name in value for name in names) else value


def _dumped(model: Model, *, include: set[str] | None = None) -> JsonValue:
    document: Json = model.model_dump(mode="json", include=include)
    return document


def _without_nulls(document: Mapping[str, JsonValue]) -> Json:
    return {
        key: _without_nulls(value) if isinstance(value, dict) else value
        for key, value in document.items()
        if value is not None
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """The differences of two runs."""

    differences: Sequence[tuple[Difference, Sequence[str]]]  # each with the points that have it; identities first
    unknown: Sequence[str]  # points without a fingerprint on one side

    @property
    def is_same(self) -> bool:
        """Whether all points are known to have the same identity."""
        return not self.unknown and all(difference.part != "identity" for difference, _ in self.differences)


def likeness_of(pairs: Iterable[Pair]) -> Likeness:
    different: list[tuple[Difference, list[str]]] = []
    unknown = []
    for pair in pairs:
        ours, theirs = pair.baseline.status.fingerprint, pair.candidate.status.fingerprint
        if ours is None or theirs is None:
            unknown.append(pair.baseline.spec.point)
            continue
        for difference in differences(ours, theirs):
            # JSON values cannot be keys of a dictionary.
            if difference not in (earlier for earlier, _ in different):
                different.append((difference, []))
            next(points for earlier, points in different if earlier == difference).append(pair.baseline.spec.point)
    different.sort(key=lambda case: case[0].part != "identity")
    return Likeness(differences=different, unknown=unknown)
