"""Small runs and suites as users write them, and plans of them."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import strategies as st

from plimsoll.api.errors import SpecError
from plimsoll.api.model import Integer
from plimsoll.api.names import API_VERSION, RUN_KIND, SUITE_KIND
from plimsoll.api.run import BenchmarkRun, decode_run, load_run
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.ceph import rook_render as rook
from plimsoll.lifecycle.ceph.rook_render import csi_driver, needs_storage_class, storage_class
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.render import ceph, client, conductor, network, teardown
from plimsoll.lifecycle.run import Run, Settings, run_of
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.plan.document import CephTarget, Plan
from plimsoll.plan.expand import make_plan
from plimsoll.tools.base import Command, Output, PeerTool, StepContext, ToolParameters
from plimsoll.tools.cast import Pairing


def manifest(kind: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return an object of Plimsoll as a user writes it; a field of the specification that is None is left out."""
    fields = {name: value for name, value in spec.items() if value is not None}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": fields}


def document(**spec: Any) -> dict[str, Any]:
    """Return a small run; `spec` replaces parts of its specification."""
    parts = {
        "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
        "clients": {"count": 2},
        "workloads": [workload()],
    }
    return {**manifest(RUN_KIND, {}, name="run"), "spec": parts | spec}


def workload(**fields: Any) -> dict[str, Any]:
    return {"name": "w", "fio": {"blockSize": ["4Ki"]}} | fields


def problems(given: str | dict[str, Any]) -> list[str]:
    with pytest.raises(SpecError) as caught:
        _ = load_run(given) if isinstance(given, str) else decode_run(given)
    assert str(caught.value).splitlines() == [str(problem) for problem in caught.value.problems]
    return [str(problem) for problem in caught.value.problems]


RUN = {
    "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
    "clients": {"count": 2},
    "workloads": [
        {"name": "reads", "fio": {"blockSize": ["4Ki"], "ioDepth": [1, 16]}, "runtimeSeconds": 20},
        {"name": "writes", "fio": {"pattern": "randwrite"}},
    ],
    "repetitions": 3,
}
VARIANTS = [
    {"name": "small", "set": {}},
    {"name": "large", "set": {"workloads": [{"name": "reads", "fio": {"blockSize": ["64Ki"]}}]}},
]


def large_run(points: int) -> dict[str, Any]:
    reads = {"name": "reads", "fio": {"ioDepth": [*range(1, points + 1)]}, "runtimeSeconds": 20}
    return RUN | {"workloads": [reads], "repetitions": 10, "timeouts": {"totalSeconds": 86400}}


def suite_document(name: str = "sizes", **spec: Any) -> dict[str, Any]:
    """Return a suite of two variants; `spec` replaces parts of its specification."""
    return {**manifest(SUITE_KIND, {}, name=name), "spec": {"run": RUN, "variants": VARIANTS} | spec}


def _mapping(*keys: str, value: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys), value, max_size=len(keys))


# What users may write, from real fields, and values of any form in their places.
_SCALARS = st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["4Ki", "fast", ""])
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=2) | _mapping("name", "size", value=inner))
_PARAMETERS = st.dictionaries(st.sampled_from(["blockSize", "ioDepth", "pattern"]), _VALUES, max_size=2)


_ANY_POOLS = _mapping(
    "replicated", "erasureCoded", "failureDomain", value=_mapping("size", "dataChunks", value=_SCALARS) | _VALUES
)
_ANY_ROOK = _mapping("cluster", "pool", "existingPool", "fileSystem", "existingFileSystem", value=_ANY_POOLS | _VALUES)
ANY_STORAGE = _mapping("rook", "ceph", "storageClass", "volume", value=_ANY_ROOK | _VALUES)
ANY_WORKLOADS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")},
        optional={
            "fio": _PARAMETERS | _SCALARS,
            "dd": _PARAMETERS | _SCALARS,
            "runtimeSeconds": _SCALARS,
            "clients": st.lists(st.integers(1, 3), max_size=2),
        },
    ),
    max_size=4,
    unique_by=lambda workload: str(workload["name"]),
)
ANY_SPEC = st.fixed_dictionaries(
    {},
    optional={
        "storage": ANY_STORAGE | _VALUES,
        "workloads": ANY_WORKLOADS | _VALUES | st.lists(_VALUES, max_size=3),
        "clients": _mapping("count", "nodeSelector", value=_VALUES),
        "podTemplate": _mapping("labels", "tolerations", "env", value=_VALUES),
        "repetitions": _SCALARS,
        "bogus": _VALUES,
    },
)


UID = "d9428888-122b-11e1-b85c-61cd3cbb3210"
SETTINGS = Settings(runner_image="runner:1")
MONITORS = ("192.0.2.1:6789", "192.0.2.2:6789")

_FIO = {"name": "w", "fio": {}, "runtimeSeconds": 4, "rampSeconds": 1}

STORAGE: Mapping[str, Mapping[str, Any]] = yaml.safe_load("""
rook-claims:
  rook: {cluster: &cluster {namespace: rook-ceph, name: rook-ceph}, pool: {replicated: {size: 1}, placementGroups: 8}}
  volume: {size: 1Gi}
rook-images:
  rook:
    cluster: *cluster
    pool:
      erasureCoded: {dataChunks: 2, codingChunks: 1}
      failureDomain: host
      deviceClass: ssd
      crushRoot: fast
      compressionMode: aggressive
      placementGroups: 16
  volume: {size: 1Gi, access: LibRBD, rbdCache: true}
rook-existing:
  rook: {cluster: *cluster, existingPool: {name: shared, dataPool: shared-data}}
  volume: {size: 1Gi, mode: Block}
rook-files:
  rook:
    cluster: *cluster
    fileSystem:
      metadataPool: {replicated: {size: 3}, placementGroups: 16}
      dataPools:
      - {replicated: {size: 3}, placementGroups: 16}
      - {erasureCoded: {dataChunks: 2, codingChunks: 1}, placementGroups: 32}
      metadataServers: 2
    config:
    - {who: osd, name: osd_mclock_profile, value: high_client_ops}
    - {who: "osd/class:ssd", name: osd_memory_target, value: 4Gi}
  volume: {size: 1Gi, sharing: Shared}
rook-existing-files:
  rook: {cluster: *cluster, existingFileSystem: {name: shared, dataPool: shared-fast}}
  volume: {size: 1Gi}
ceph:
  ceph:
    monitors: ["192.0.2.2:6789", "192.0.2.1:16789"]
    user: bench
    keyringSecret: {name: our-key, key: ceph.client.bench.keyring}
    pool: {name: bench}
  volume: {size: 1Gi, access: LibRBD}
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class CephRun:
    """A run, its plan, and what of its plan is Ceph's."""

    run: Run
    plan: Plan
    target: CephTarget


def with_fast_coding(storage: Mapping[str, Any]) -> dict[str, Any]:
    """Return storage whose erasure-coded pools have a stripe unit and optimizations."""
    changed = copy.deepcopy(dict(storage))
    rook = changed["rook"]
    for pool in (rook.get("pool", {}), *rook.get("fileSystem", {}).get("dataPools", ())):
        if "erasureCoded" in pool:
            pool["erasureCoded"] |= {"stripeUnit": "16Ki", "optimizations": True}
    return changed


def ceph_run(name: str, *workloads: Mapping[str, Any], storage: Mapping[str, Any] | None = None) -> CephRun:
    """Return the run on that storage, or another; with one workload of fio unless others are given."""
    metadata = {"name": name, "namespace": "bench", "uid": UID, "creationTimestamp": "2026-01-01T12:00:00Z"}
    spec = {
        "storage": storage or STORAGE[name],
        "clients": {"count": 1},
        "workloads": [dict(one) for one in workloads] or [_FIO],
        "repetitions": 1,
    }
    run = run_of(manifest(RUN_KIND, spec, **metadata), SETTINGS)
    assert run.document is not None, run.spec_problem
    plan = make_plan(run.document, seed=1, runner_image=SETTINGS.runner_image)
    assert plan.ceph is not None
    return CephRun(run=run, plan=plan, target=plan.ceph)


def made_in_rook(made: CephRun) -> list[Object]:
    secrets = rook.key_secrets(made.run.namespace, ()).of_run(made.target)
    assert secrets is not None
    return [*rook.pools(made.run, made.target), *rook.users(made.run, made.target, secrets, version="20.2.4-0")]


def made_for_ceph(made: CephRun) -> list[Object]:
    """Return every object of a run that another run has not, or has otherwise."""
    run, plan = made.run, made.plan
    record = teardown.record_of(plan)
    assert record is not None
    driver = csi_driver(file_system=made.target.file_system is not None)
    own = [storage_class(run, plan, f"rook-ceph.{driver}.csi.ceph.com")] if needs_storage_class(plan) else []
    claims = list(client.claims(run, plan, own[0]["metadata"]["name"]))[:1] if own else []
    components = () if made.target.keyring else (naming.CONDUCTOR, naming.CLIENT)
    return [
        teardown.record_config_map(run, record, MONITORS, SETTINGS),
        *made_in_rook(made),
        *own,
        ceph.config_map(run, MONITORS),
        *(ceph.keyring_secret(run, component) for component in components),
        teardown.keyring_secret(run, SETTINGS),
        *network.policies(run, plan, SETTINGS),
        *claims,
        client.job(run, plan, SETTINGS, client=0, attempt=0),
        conductor.job(run, plan, SETTINGS),
        teardown.network_policy(run, record, SETTINGS),
        teardown.job(run, record, SETTINGS, only_restores=True),
        teardown.job(run, record, SETTINGS),
    ]


KEY = "pairs"
SERVERS = {"placement": "ClientNodes", "count": 2}


class Parameters(ToolParameters):
    """The pairs that are active at the same time."""

    axes: ClassVar[frozenset[str]] = frozenset({"streams"})
    pairing: Pairing = Pairing.EACH_PAIR
    streams: Integer = 1

    def label(self) -> str:
        return f"{self.pairing} x{self.streams}"


class Pairs(PeerTool[Parameters]):
    """Sends from one client to another."""

    key: ClassVar[str] = KEY
    program: ClassVar[str] = KEY
    parameters = Parameters
    quantities: ClassVar[Quantities] = Quantities(operations=False, cells=True)

    def peer_command(self, parameters: Parameters, context: StepContext, address: str, port: int) -> Command:
        return Command(argv=(self.program, context.step))

    def parse(self, parameters: Parameters, context: StepContext, output: Output) -> Measurement:
        raise NotImplementedError


PAIRS = Pairs()


def pairs_run(*workloads: dict[str, Any], clients: int = 2, **spec: Any) -> BenchmarkRun:
    """Return a run without storage whose workloads run the tool, by default one; None removes a field."""
    fields: dict[str, Any] = {
        "clients": {"count": clients},
        "servers": dict(SERVERS),
        "workloads": [{"name": f"w{n}", **one} for n, one in enumerate(workloads or ({KEY: {}},))],
        "repetitions": 1,
        **spec,
    }
    for workload in fields["workloads"]:
        workload |= {"runtimeSeconds": 4, "rampSeconds": 1}
    return decode_run(manifest(RUN_KIND, fields, name="run", namespace="bench", uid="u"))


def pairs_plan(*workloads: dict[str, Any], **spec: Any) -> Plan:
    return make_plan(pairs_run(*workloads, **spec), seed=1)
