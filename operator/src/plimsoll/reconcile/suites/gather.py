"""Observes a suite: its specification and status as stored, the runs that it owns, and the version of Ceph."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionStatus, ConditionType
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle.run import is_over
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.registry import versions_of
from plimsoll.reconcile.digests import Digests
from plimsoll.reconcile.gather import answer_look
from plimsoll.reconcile.suites.memory import SuiteMemory
from plimsoll.suite.children import turn_in_name
from plimsoll.suite.digest import measured_digest
from plimsoll.suite.merging import variant_spec
from plimsoll.suite.rounds.observed import Observed, OwnedRun, Suite
from plimsoll.suite.rounds.specification import Specification, read_specification
from plimsoll.suite.rounds.status import read_conditions, read_state
from plimsoll.suite.rounds.turns import LABEL_SUITE

RUN = Kind(api_version=API_VERSION, kind=RUN_KIND)

_PAGE_SIZE = 50
"""Runs in memory at once, of some 20 KiB each."""


async def gather_suite(
    document: Object, kube: Kube, *, memory: SuiteMemory, settings: Settings, now: datetime
) -> Observed:
    """Return what is observed of a suite; `document` is the suite as the API server has just returned it.

    Raises:
        ApiError: a request failed.
        pydantic.ValidationError: the status is not of this version.

    """
    suite = _suite(document, await _specification(document, memory))
    listed = await _listed(suite, kube, memory)
    return Observed(
        suite=suite,
        listed=listed,
        now=now,
        ceph_version=await _ceph_version(suite, kube, settings),
        memory=memory.outcomes if memory.has_outcome else memory.outcomes.woken(listed),
    )


async def _listed(suite: Suite, kube: Kube, memory: SuiteMemory) -> tuple[OwnedRun, ...]:
    """Return the suite's runs. There may be thousands, and the active one changes several times a minute."""
    if memory.runs is None:
        memory.runs = Digests(RUN, partial(owned_run, suite.name, suite.uid), page_size=_PAGE_SIZE)
    try:
        found = await memory.runs.look(kube, namespace=suite.namespace, labels={LABEL_SUITE: suite.name})
    except BaseException:
        # The API server may have been restored to an earlier state, with other objects under the same versions.
        memory.runs.forget()
        raise
    return tuple(run for run in found if run is not None)


def owned_run(suite: str, uid: str, obj: Object) -> OwnedRun | None:
    """Read a run; None if it is not one of the suite with that name and UID.

    Users may change labels, so the owner and the name decide.
    """
    owners = obj["metadata"].get("ownerReferences") or ()
    return named_run(suite, uid, obj) if any(owner["uid"] == uid for owner in owners) else None


def named_run(suite: str, uid: str, obj: Object) -> OwnedRun | None:
    """Read a run, whoever owns it; None if it has no name of a turn of the suite with that name and UID."""
    metadata = obj["metadata"]
    turn = turn_in_name(suite, uid, metadata["name"])
    if turn is None:
        return None
    return OwnedRun(
        name=metadata["name"],
        uid=metadata["uid"],
        variant=turn.variant,
        minute=turn.minute,
        resource_version=metadata["resourceVersion"],
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        measures=measured_digest(obj.get("spec") or {}),
        is_finished=is_over(obj),
        succeeded=_succeeded(obj.get("status") or {}),
        is_deleting="deletionTimestamp" in metadata,
    )


async def _specification(document: Object, memory: SuiteMemory) -> Specification:
    generation = document["metadata"]["generation"]
    if memory.specification is None or memory.specification[0] != generation:
        # All variants are planned, which would block the event loop for tens of milliseconds.
        memory.specification = generation, await asyncio.to_thread(read_specification, dict(document))
    return memory.specification[1]


def _suite(document: Object, specification: Specification) -> Suite:
    metadata, status = document["metadata"], document.get("status") or {}
    return Suite(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        resource_version=metadata["resourceVersion"],
        is_deleted="deletionTimestamp" in metadata,
        annotations=metadata.get("annotations") or {},
        specification=specification,
        status=status,
        state=read_state(status),
        conditions=read_conditions(status),
    )


def _succeeded(status: Mapping[str, Any]) -> bool:
    conditions: Sequence[Mapping[str, Any]] = status.get("conditions") or ()
    return any(one["type"] == ConditionType.SUCCEEDED and one["status"] == ConditionStatus.TRUE for one in conditions)


async def _ceph_version(suite: Suite, kube: Kube, settings: Settings) -> str:
    asked = suite.specification.suite
    if asked is None:
        return ""
    runs = (variant_spec(asked.spec.run, variant) for variant in asked.spec.variants)
    storages = [storage for run in runs if isinstance(storage := run.get("storage"), dict)]
    return await answer_look(versions_of(storages, suite.namespace, settings), kube)
