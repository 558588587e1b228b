"""Runs on Ceph, each with its plan as it is frozen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.ceph import rook_render as rook
from plimsoll.lifecycle.ceph.rook_render import needs_storage_class, storage_class
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.render import ceph, client, conductor, network, teardown
from plimsoll.lifecycle.run import Run, run_of
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import CephTarget, Plan
from plimsoll.plan.expand import make_plan

UID = "d9428888-122b-11e1-b85c-61cd3cbb3210"
SETTINGS = Settings(runner_image="runner:1")
MONITORS = ("192.0.2.1:6789", "192.0.2.2:6789")

_CLUSTER = {"namespace": "rook-ceph", "name": "rook-ceph"}
_FIO = {"name": "w", "fio": {}, "runtimeSeconds": 4, "rampSeconds": 1}

STORAGE: Mapping[str, Mapping[str, Any]] = {
    "rook-claims": {
        "rook": {"cluster": _CLUSTER, "pool": {"replicated": {"size": 1}, "placementGroups": 8}},
        "volume": {"size": "1Gi", "mode": "Filesystem"},
    },
    "rook-images": {
        "rook": {
            "cluster": _CLUSTER,
            "pool": {
                "erasureCoded": {"dataChunks": 2, "codingChunks": 1},
                "failureDomain": "host",
                "deviceClass": "ssd",
                "crushRoot": "fast",
                "compressionMode": "aggressive",
                "placementGroups": 16,
            },
        },
        "volume": {"size": "1Gi", "access": "LibRBD", "rbdCache": True},
    },
    "rook-existing": {
        "rook": {"cluster": _CLUSTER, "existingPool": {"name": "shared", "dataPool": "shared-data"}},
        "volume": {"size": "1Gi"},
    },
    "rook-files": {
        "rook": {
            "cluster": _CLUSTER,
            "fileSystem": {
                "metadataPool": {"replicated": {"size": 3}, "placementGroups": 16},
                "dataPools": [
                    {"replicated": {"size": 3}, "placementGroups": 16},
                    {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}, "placementGroups": 32},
                ],
                "metadataServers": 2,
            },
            "config": [
                {"who": "osd", "name": "osd_mclock_profile", "value": "high_client_ops"},
                {"who": "osd/class:ssd", "name": "osd_memory_target", "value": "4Gi"},
            ],
        },
        "volume": {"size": "1Gi", "sharing": "Shared"},
    },
    "rook-existing-files": {
        "rook": {"cluster": _CLUSTER, "existingFileSystem": {"name": "shared", "dataPool": "shared-fast"}},
        "volume": {"size": "1Gi"},
    },
    "ceph": {
        "ceph": {
            "monitors": ["192.0.2.2:6789", "192.0.2.1:16789"],
            "user": "bench",
            "keyringSecret": {"name": "our-key", "key": "ceph.client.bench.keyring"},
            "pool": {"name": "bench"},
        },
        "volume": {"size": "1Gi", "access": "LibRBD"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CephRun:
    """A run, its plan, and what of its plan is Ceph's."""

    run: Run
    plan: Plan
    target: CephTarget


def ceph_run(name: str, *workloads: Mapping[str, Any]) -> CephRun:
    """Return the run on that storage; with one workload of fio unless others are given."""
    metadata = {"name": name, "namespace": "bench", "uid": UID, "creationTimestamp": "2026-01-01T12:00:00Z"}
    spec = {
        "storage": STORAGE[name],
        "clients": {"count": 1},
        "workloads": [dict(one) for one in workloads] or [_FIO],
        "repetitions": 1,
    }
    run = run_of({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": metadata, "spec": spec})
    assert run.document is not None, run.spec_problem
    plan = make_plan(run.document, seed=1, runner_image=SETTINGS.runner_image)
    assert plan.ceph is not None
    return CephRun(run=run, plan=plan, target=plan.ceph)


def made_in_rook(made: CephRun) -> list[Object]:
    """Return pools and users, in the order of their making."""
    found = rook.key_secrets(made.target, ())
    assert found is not None
    return [*rook.pools(made.run, made.target), *rook.users(made.run, made.target, found)]


def made_for_ceph(made: CephRun) -> list[Object]:
    """Return every object of a run that another run has not, or has otherwise."""
    run, plan = made.run, made.plan
    record = teardown.record_of(plan)
    assert record is not None
    own = [storage_class(run, plan, "rook-ceph")] if needs_storage_class(plan) else []
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
        teardown.job(run, record, SETTINGS),
    ]
