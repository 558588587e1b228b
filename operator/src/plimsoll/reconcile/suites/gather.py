"""Observes a suite: its specification and status as stored, the runs that it owns, and the version of Ceph."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionStatus, ConditionType
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle.run import needs_attention
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.registry import versions_of
from plimsoll.reconcile.gather import answer_look
from plimsoll.reconcile.suites.memory import SuiteMemory
from plimsoll.suite.children import child_name, turn_in_name, turns_of
from plimsoll.suite.merging import merged_spec
from plimsoll.suite.rounds.observed import Observed, OwnedRun, Suite
from plimsoll.suite.rounds.specification import Specification, read_specification
from plimsoll.suite.rounds.status import read_conditions, read_state
from plimsoll.suite.rounds.turns import LABEL_SUITE

RUN = Kind(api_version=API_VERSION, kind=RUN_KIND)


async def gather_suite(
    document: Object, kube: Kube, *, memory: SuiteMemory, settings: Settings, now: datetime
) -> Observed:
    """Return what is observed of a suite; `document` is the suite as the API server has just returned it.

    Raises:
        ApiError: a request failed.
        pydantic.ValidationError: the status is not of this version.

    """
    specification = await _specification(document, memory)
    suite = _suite(document, specification)
    found = await kube.list(RUN, namespace=suite.namespace, labels={LABEL_SUITE: suite.name})
    seen = Observed(
        suite=suite,
        runs=_owned(suite, found),
        now=now,
        ceph_version=await _ceph_version(suite, kube, settings),
        judgement=memory.judgement,
        checked=memory.checked,
        refusal=memory.refusal,
    )
    return await _with_expected_run(seen, kube)


def is_owned(run: Object, uid: str) -> bool:
    """Whether a run belongs to the suite with that UID. Users may change its labels, so its owner decides."""
    return any(owner["uid"] == uid for owner in run["metadata"].get("ownerReferences") or ())


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
        is_deleted="deletionTimestamp" in metadata,
        annotations=metadata.get("annotations") or {},
        specification=specification,
        status=status,
        state=read_state(status),
        conditions=read_conditions(status),
    )


def _owned(suite: Suite, found: Iterable[Object]) -> tuple[OwnedRun, ...]:
    runs = (_owned_run(suite, obj) for obj in found)
    return tuple(run for run in runs if run is not None)


def _owned_run(suite: Suite, obj: Object) -> OwnedRun | None:
    """Read a run; None if it is not of the suite."""
    metadata = obj["metadata"]
    turn = turn_in_name(suite.name, suite.uid, metadata["name"])
    if turn is None or not is_owned(obj, suite.uid):
        return None
    return OwnedRun(
        name=metadata["name"],
        uid=metadata["uid"],
        minute=turn.minute,
        is_finished=not needs_attention(obj),
        succeeded=_succeeded(obj.get("status") or {}),
        is_deleting="deletionTimestamp" in metadata,
    )


def _succeeded(status: Mapping[str, Any]) -> bool:
    conditions: Sequence[Mapping[str, Any]] = status.get("conditions") or ()
    return any(one["type"] == ConditionType.SUCCEEDED and one["status"] == ConditionStatus.TRUE for one in conditions)


async def _with_expected_run(seen: Observed, kube: Kube) -> Observed:
    """Return the observation with the run of the next turn, if it exists and a list by labels does not find it.

    Otherwise it would count as gone, or would be created again and again.
    """
    name = _expected_name(seen)
    if not name or any(run.name == name for run in seen.runs):
        return seen
    found = await kube.get(RUN, name, seen.suite.namespace)
    return seen if found is None else replace(seen, runs=(*seen.runs, *_owned(seen.suite, [found])))


def _expected_name(seen: Observed) -> str:
    """Return the name of the run of the next turn; empty without an active round, and after its last turn."""
    suite, active = seen.suite.specification.suite, seen.suite.state.active
    if suite is None or active is None or active.is_measured:
        return ""
    if active.current:
        return active.current
    turns = turns_of(suite.spec, active.seed)
    is_same = len(turns) == active.total
    return child_name(suite, turns[active.done], active.minute, seen.suite.uid) if is_same else ""


async def _ceph_version(suite: Suite, kube: Kube, settings: Settings) -> str:
    asked = suite.specification.suite
    if asked is None:
        return ""
    runs = (merged_spec(asked.spec.run, variant.changes) for variant in asked.spec.variants)
    storages = [storage for run in runs if isinstance(storage := run.get("storage"), dict)]
    return await answer_look(versions_of(storages, suite.namespace, settings), kube)
