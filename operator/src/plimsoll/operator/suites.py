"""The steps of a look at a `BenchmarkSuite`. Every look reads it again, because its status is its memory."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from pydantic import ValidationError

from plimsoll.api.names import API_VERSION, RUN_KIND, SUITE_KIND, ConditionStatus, ConditionType
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import SuiteSpec
from plimsoll.api.suite_status import BenchmarkSuiteStatus
from plimsoll.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
    UnknownKindError,
)
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.decision import DecisionOf, Event, Refusal
from plimsoll.lifecycle.run import is_over
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.registry import versions_of
from plimsoll.operator.gather import RESULT, RESULTS_PAGE_SIZE, Digests, answer_look
from plimsoll.operator.loop import Body, Reconciler, Record, Records, Steps
from plimsoll.suite.children import measured_digest, turn_in_name
from plimsoll.suite.evaluation import RoundResults, evaluate, projected
from plimsoll.suite.history.rounds import MeasuredRound
from plimsoll.suite.merging import variant_spec
from plimsoll.suite.rounds.actions import (
    LONGEST_WAIT_SECONDS,
    CreateRun,
    Decision,
    DeleteRun,
    DryRun,
    Emit,
    GetRun,
    Judge,
    PatchStatus,
    Request,
    RoundRuns,
    RunVersion,
)
from plimsoll.suite.rounds.observed import (
    Absent,
    Checked,
    Deleted,
    Found,
    Judgement,
    Memory,
    Observed,
    Outcome,
    OwnedRun,
    RunRefusal,
    Specification,
    Suite,
    read_specification,
)
from plimsoll.suite.rounds.status import read_conditions, read_state
from plimsoll.suite.rounds.step import step
from plimsoll.suite.rounds.turns import LABEL_SUITE


@dataclass(slots=True, kw_only=True)
class SuiteMemory:
    """The state that only suites have.

    Attributes:
        runs: the suite's runs, so that the next look reads only those that have changed; None before the first look.
        specification: with the generation of the suite that it was read from; reading it takes time.
        outcomes: of the requests so far.
        has_outcome: whether the last look ended with the outcome of a request, and nothing has happened since.
        decided: what the last decision was based on.
        rounds: of accepted rounds one value for each run and quantity, and the fingerprint of each point, while a round
            is being evaluated; empty otherwise, as the next evaluation is days away. 15 rounds of 16 variants with 10
            repeats and 20 points each are some 100 MB; usual suites have a hundredth.

    """

    runs: Digests[OwnedRun | None] | None = None
    specification: tuple[int, Specification] | None = None
    outcomes: Memory = field(default_factory=Memory)
    has_outcome: bool = False
    decided: Observed | None = None
    rounds: list[tuple[RoundRuns, MeasuredRound]] = field(default_factory=list)


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


_OTHER = (
    "exists and does not measure what the suite asks for: somebody else created it, or an admission policy changed it "
    "(exempt BenchmarkRuns with the label plimsoll.dev/suite from the policy, or write what it sets into spec.run)"
)
_REFUSALS = (ForbiddenError, InvalidError, NotFoundError, UnknownKindError)


async def create_run(action: CreateRun, suite: Suite, kube: Kube, *, now: Callable[[], datetime]) -> Found | RunRefusal:
    """Create a run; one of the same name that the suite owns and that measures the same is as good.

    Raises:
        ApiError: the API server did not decide.

    """
    try:
        await kube.create(action.run)
    except _REFUSALS as error:
        return RunRefusal(name=action.name, time=now(), message=_reason(error))
    found = await kube.get(RUN, action.name, suite.namespace)
    if found is None:
        raise ConflictError(f"create {RUN.kind} {suite.namespace}/{action.name}", "it was deleted meanwhile")
    problem, run = _checked(found, suite, measured_digest(action.run["spec"]))
    return Found(run=run) if run else RunRefusal(name=action.name, time=now(), message=problem, is_taken=True)


async def get_run(
    action: GetRun, suite: Suite, kube: Kube, *, now: Callable[[], datetime]
) -> Found | Absent | RunRefusal:
    """Return a run of the suite by its name. One that was seen before is of the suite, whoever owns it now.

    Raises:
        ApiError: the API server did not answer.

    """
    found = await kube.get(RUN, action.name, suite.namespace)
    if found is None:
        return Absent(name=action.name)
    is_known = found["metadata"]["uid"] == action.uid
    problem, run = _checked(found, suite, action.measures)
    run = named_run(suite.name, suite.uid, found) if is_known else run
    return Found(run=run) if run else RunRefusal(name=action.name, time=now(), message=problem, is_taken=True)


def _checked(found: Object, suite: Suite, measures: str) -> tuple[str, OwnedRun | None]:
    """Return a run if the suite owns it and it measures what is asked for, if that is known; or what is wrong."""
    run = owned_run(suite.name, suite.uid, found)
    if run is None:
        return "exists and is not of this suite", None
    if measures and run.measures != measures:
        return _OTHER, None
    return "", run


async def delete_run(action: DeleteRun, suite: Suite, kube: Kube) -> Deleted:
    """Delete a run with its UID.

    Raises:
        ApiError: the API server did not accept it.

    """
    await kube.delete(RUN, action.name, suite.namespace, uid=action.uid)
    return Deleted(uid=action.uid)


async def check_runs(action: DryRun, kube: Kube, *, now: Callable[[], datetime]) -> Checked:
    """Have the API server check the run of every variant, until it refuses one.

    Raises:
        ApiError: the API server did not decide.

    """
    for variant, run in action.runs.items():
        try:
            await kube.create(run, dry_run=True)
        except _REFUSALS as error:
            return Checked(digest=action.digest, time=now(), variant=variant, message=_reason(error))
    return Checked(digest=action.digest, time=now())


def _reason(error: ApiError) -> str:
    """Return the API server's answer.

    Raises:
        UnauthorizedError: the credentials are outdated, which says nothing about the run.

    """
    if isinstance(error, UnauthorizedError):
        raise error
    return error.reason


_log = logging.getLogger(__name__)


async def judge_round(action: Judge, spec: SuiteSpec, namespace: str, memory: SuiteMemory, kube: Kube) -> Judgement:
    """Return the evaluation of a round of a suite with that specification.

    Raises:
        ApiError: results could not be read.

    """
    memory.rounds = [known for known in memory.rounds if known[0] in action.baseline]
    accepted = [await _known_round(runs, spec, namespace, memory, kube) for runs in action.baseline]
    pinned = [one for one in accepted if one.minute in action.pinned]
    current = await _round(action.round, spec, namespace, kube)
    return await asyncio.to_thread(evaluate, action, spec, current, accepted=accepted, pinned=pinned)


async def _known_round(
    runs: RoundRuns, spec: SuiteSpec, namespace: str, memory: SuiteMemory, kube: Kube
) -> MeasuredRound:
    """Return the values of a former round, which never change while its runs are the same.

    They are kept at once, so that a request that fails later does not discard them.
    """
    known = next((measured for one, measured in memory.rounds if one == runs), None)
    if known is None:
        found = await _round(runs, spec, namespace, kube)
        known = await asyncio.to_thread(found.measured)
        memory.rounds.append((runs, known))
    return known


async def _round(runs: RoundRuns, spec: SuiteSpec, namespace: str, kube: Kube) -> RoundResults:
    found = {
        variant: {run.name: await _results_of(run, namespace, kube) for run in of_variant}
        for variant, of_variant in runs.runs.items()
    }
    return RoundResults(minute=runs.minute, digest=runs.digest, repeat=spec.repeat, runs=found)


async def _results_of(run: RunVersion, namespace: str, kube: Kube) -> Sequence[BenchmarkResult]:
    """Return the results of a run by name; none if one of them cannot be read, so that the run counts as missing."""
    labels = {naming.LABEL_RUN: naming.label_value(run.name)}
    found: dict[str, BenchmarkResult] = {}
    try:
        async for page in kube.pages(RESULT, size=RESULTS_PAGE_SIZE, namespace=namespace, labels=labels):
            own = [obj for obj in page if obj.get("spec", {}).get("runUid") == run.uid]
            found |= await asyncio.to_thread(_project, own)
    except ValidationError as error:
        _log.warning("a result of run %s/%s is not of this version: %s", namespace, run.name, error)
        return ()
    return [found[name] for name in sorted(found)]


def _project(objects: Sequence[Object]) -> dict[str, BenchmarkResult]:
    return {obj["metadata"]["name"]: projected(obj) for obj in objects}


SUITE = Kind(api_version=API_VERSION, kind=SUITE_KIND)


_FIELDS = tuple(model.serialization_alias or name for name, model in BenchmarkSuiteStatus.model_fields.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteName:
    """A suite."""

    name: str
    namespace: str
    uid: str


@dataclass(slots=True, kw_only=True)
class SuiteSteps(Steps[SuiteName, Observed | None, SuiteMemory, Request]):
    """The steps of a suite. None is observed of one that is gone.

    Attributes:
        now: returns the API server's time.
        judging: held while a round is evaluated, which takes much memory and processor time: one round at a time, of
            whichever suite.

    """

    kind: ClassVar[Kind] = SUITE

    kube: Kube
    settings: Settings
    now: Callable[[], datetime]
    records: Records[SuiteMemory] = field(default_factory=lambda: Records(SuiteMemory))
    judging: asyncio.Lock = field(default_factory=asyncio.Lock)

    def read(self, body: Body) -> SuiteName:
        """Return what identifies the suite."""
        metadata = body["metadata"]
        return SuiteName(name=metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"])

    async def observe(self, subject: SuiteName, record: Record[SuiteMemory]) -> Observed | None:
        """Observe a suite. A status is only written over the one that is read here."""
        document = await self.kube.get(SUITE, subject.name, subject.namespace)
        if document is None or document["metadata"]["uid"] != subject.uid:
            record.status, record.version = {}, None
            return None
        record.status, record.version = _whole(document.get("status") or {}), document["metadata"]["resourceVersion"]
        memory = record.memory
        memory.has_outcome &= not record.was_woken
        # A failed request is logged, and delays nothing but the next look.
        record.refusal = None
        try:
            seen = await gather_suite(document, self.kube, memory=memory, settings=self.settings, now=self.now())
        except ValidationError as error:
            _log.error("suite %s/%s has a status of another version: %s", subject.namespace, subject.name, error)
            return None
        memory.outcomes, memory.has_outcome = seen.memory, False
        return seen

    def decide(self, subject: SuiteName, seen: Observed | None, record: Record[SuiteMemory]) -> DecisionOf[Request]:
        """Decide. After a request, the next look follows at once."""
        if seen is None or seen is record.memory.decided:
            # Also after a failed request: nothing else was observed.
            return DecisionOf(status=record.status or {}, requeue_seconds=LONGEST_WAIT_SECONDS)
        record.memory.decided = seen
        decision = step(seen)
        if not isinstance(decision.request, GetRun | Judge):
            record.memory.rounds.clear()
        status = record.status or {}
        for one in decision.actions:
            if isinstance(one, PatchStatus):
                # It is written even if it is the same: that fails if another operator has written one since.
                status, record.status = one.status, None
        return DecisionOf(
            status=status,
            events=tuple(_event(one) for one in decision.actions if isinstance(one, Emit)),
            actions=() if decision.request is None else (decision.request,),
            requeue_seconds=_pause_seconds(decision),
        )

    async def act(self, subject: SuiteName, actions: Sequence[Request], record: Record[SuiteMemory]) -> None:
        """Perform the request, and keep its outcome for the next look."""
        memory = record.memory
        for action in actions:
            if memory.decided is not None:
                outcome = await self._outcome(action, memory.decided.suite, memory)
                memory.outcomes, memory.has_outcome = memory.outcomes.after(outcome), True

    def decide_unseen(self, subject: SuiteName, refusal: Refusal) -> DecisionOf[Request] | None:
        """Change nothing: what cannot be observed is logged."""
        return None

    async def _outcome(self, action: Request, suite: Suite, memory: SuiteMemory) -> Outcome:
        match action:
            case CreateRun():
                return await create_run(action, suite, self.kube, now=self.now)
            case GetRun():
                return await get_run(action, suite, self.kube, now=self.now)
            case DeleteRun():
                return await delete_run(action, suite, self.kube)
            case DryRun():
                return await check_runs(action, self.kube, now=self.now)
            case Judge():
                asked = suite.specification.suite
                if asked is None:
                    raise ValueError("an invalid suite has no round to judge")
                async with self.judging:
                    return await judge_round(action, asked.spec, suite.namespace, memory, self.kube)


SuiteReconciler = Reconciler[SuiteName, Observed | None, SuiteMemory, Request]


def _whole(status: Body) -> dict[str, object]:
    """Return a stored status in the form in which it is written: absent fields are None."""
    return {name: status.get(name) for name in _FIELDS}


def _event(one: Emit) -> Event:
    return Event(kind=one.severity, reason=one.reason, message=one.message)


def _pause_seconds(decision: Decision) -> float:
    if decision.request is not None:
        return 0.0
    return LONGEST_WAIT_SECONDS if decision.again_after is None else decision.again_after
