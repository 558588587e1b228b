"""What a result is of: two results may be compared if they were asked for the same of the same.

The identity holds what decides that, the context everything else that may explain a difference. Both are digested as
SHA-256 of canonical JSON: sorted keys, no spaces, UTF-8. What is not known is left out, never null, so that a result
has the same digests wherever it was stored.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from pydantic import JsonValue

from plimsoll import __version__
from plimsoll.api.model import Model
from plimsoll.api.result import Fingerprint
from plimsoll.plan.ceph import base_name
from plimsoll.plan.document import Plan, Point
from plimsoll.tools.registry import TOOLS

_STORAGE_CLASS_IDENTITY = ("name", "provisioner", "parameters", "mountOptions")
_PREPARE_IDENTITY = {"prefill", "precondition", "discard", "drop_caches", "fill_percent"}
_IDENTITY_FACTS = ("tools", "dataSetBytes", "storageClass", "pool")
"""What of an environment goes into the identity, at least in part; the rest is context."""

Json = dict[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which two fingerprints differ.

    Attributes:
        key: where it stands, as in `volume.size`.
        baseline: the one's value, None if it has none.
        candidate: the other's.

    """

    part: Literal["identity", "context"]
    key: str
    baseline: JsonValue
    candidate: JsonValue


def fingerprint(plan: Plan, point: Point, environment: Mapping[str, JsonValue]) -> Fingerprint:
    """Return what the numbers of a point are of.

    `environment` is where they were measured, as in a result's status; what the plan knows of the platform is added.
    """
    facts = {**environment, **plan.environment}
    identity = _known(_identity(plan, point, facts))
    context = _known(_context(plan, point, facts))
    return Fingerprint(
        identity=identity, context=context, identity_sha256=digest(identity), context_sha256=digest(context)
    )


def differences(baseline: Fingerprint, candidate: Fingerprint) -> list[Difference]:
    """Return in what two fingerprints differ, the identity first, by key. Lists are compared as a whole."""
    return [
        *_differences("identity", baseline.identity, candidate.identity),
        *_differences("context", baseline.context, candidate.context),
    ]


def digest(part: Mapping[str, JsonValue]) -> str:
    """Return the SHA-256 of a part of a fingerprint, in hexadecimal."""
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def leaves(document: Mapping[str, JsonValue], path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield every value that is no mapping, with its path; an empty mapping is a value."""
    for key, value in document.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value:
            yield from leaves(value, here)
        else:
            yield here, value


def _identity(plan: Plan, point: Point, facts: Mapping[str, JsonValue]) -> Json:
    return {
        "tool": point.tool,
        "parameters": _measured(point),
        "toolVersions": _versions(facts).get(point.tool),
        "clients": point.clients,
        "runtimeSeconds": point.runtime_seconds,
        "rampSeconds": point.ramp_seconds,
        "volume": _dumped(plan.volume) if plan.volume else None,
        "prepare": _dumped(plan.prepare, include=_PREPARE_IDENTITY),
        "dataSetBytes": facts.get("dataSetBytes"),
        "storageClass": _nameless(plan, _storage_class(facts.get("storageClass"), identity=True)),
        # What was read back from Ceph is what was measured. Without it, two layouts must still not look alike.
        "pool": facts.get("pool") or _pool_asked_for(plan),
    }


def _measured(point: Point) -> JsonValue:
    """Return a point's parameters without those that do not change what is measured."""
    credentials = TOOLS[point.tool].parameters.credentials
    return {name: value for name, value in point.parameters.items() if name not in credentials}


def _context(plan: Plan, point: Point, facts: Mapping[str, JsonValue]) -> Json:
    others: Json = {name: known for name, known in _versions(facts).items() if name != point.tool}
    return {
        "plimsoll": __version__,
        "seed": plan.seed,
        "repetitions": plan.repetitions,
        "runClients": plan.clients,
        "runnerImage": plan.runner_image or None,
        "settleSeconds": plan.prepare.settle_seconds,
        "gates": _dumped(plan.gates),
        "networkBytesPerSecond": plan.network_bytes_per_second,
        **{name: value for name, value in facts.items() if name not in _IDENTITY_FACTS},
        "otherTools": others or None,
        "storageClass": _storage_class(facts.get("storageClass"), identity=False),
    }


def _versions(facts: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the versions of each tool: one mapping if all clients agree, otherwise a list of them."""
    known = facts.get("tools")
    found: dict[str, set[str]] = {}
    for tools in known if isinstance(known, list) else [known]:
        for name, version in tools.items() if isinstance(tools, dict) else ():
            if isinstance(version, str):
                found.setdefault(name, set()).add(version)
    return {name: [*sorted(versions)] for name, versions in found.items()}


def _storage_class(known: JsonValue, *, identity: bool) -> JsonValue:
    """Return the part of a StorageClass that decides what is measured, or the other part; a bare name is identity."""
    if not isinstance(known, dict):
        return known if identity else None
    return {key: value for key, value in known.items() if (key in _STORAGE_CLASS_IDENTITY) is identity} or None


def _nameless(plan: Plan, known: JsonValue) -> JsonValue:
    """Return a StorageClass without what is named after the run: no other run could ever have the same."""
    if plan.ceph is None:
        return known
    base = base_name(plan.run.name, plan.run.uid)
    if isinstance(known, dict):
        return {key: _nameless(plan, value) for key, value in known.items()}
    return None if isinstance(known, str) and base in known else known


def _pool_asked_for(plan: Plan) -> JsonValue:
    return _dumped(plan.ceph.made) if plan.ceph is not None and plan.ceph.made is not None else None


def _dumped(model: Model, *, include: set[str] | None = None) -> JsonValue:
    document: Json = model.model_dump(mode="json", include=include)
    return document


def _known(document: Mapping[str, JsonValue]) -> Json:
    """Return a document without its nulls, at every depth."""
    return {
        key: _known(value) if isinstance(value, dict) else value for key, value in document.items() if value is not None
    }


def _differences(
    part: Literal["identity", "context"], baseline: Mapping[str, JsonValue], candidate: Mapping[str, JsonValue]
) -> Iterator[Difference]:
    ours, theirs = dict(leaves(baseline)), dict(leaves(candidate))
    for key in sorted({*ours, *theirs}):
        if ours.get(key) != theirs.get(key):
            yield Difference(part=part, key=key, baseline=ours.get(key), candidate=theirs.get(key))
