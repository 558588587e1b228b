"""Looks at a `BenchmarkSuite`. Every look reads it again, because its status is its memory."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from pydantic import ValidationError

from plimsoll.api.names import API_VERSION, SUITE_KIND
from plimsoll.api.reasons.entry import Event
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import SuiteSpec
from plimsoll.api.suite_status import BenchmarkSuiteStatus
from plimsoll.kube import port
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.run import is_over
from plimsoll.lifecycle.storage.registry import versions_of
from plimsoll.operator.gather import RESULT, RESULTS_PAGE_SIZE, Digests, answer_look
from plimsoll.operator.loop import Body, Reconciler, Record, Records
from plimsoll.operator.runs import RUN
from plimsoll.suite.children import has_numbers, measured_digest, turn_in_name, variant_spec
from plimsoll.suite.evaluation import RoundResults, evaluate_round, projected, recorded_evaluation
from plimsoll.suite.measured import MeasuredRound, sharing
from plimsoll.suite.rounds import observed
from plimsoll.suite.rounds.step import step
from plimsoll.suite.rounds.turns import LABEL_SUITE

SUITE = Kind(api_version=API_VERSION, kind=SUITE_KIND)

_PAGE_SIZE = 50  # runs in memory at once, of some 20 KiB each
_REFUSALS = (port.ForbiddenError, port.InvalidError, port.NotFoundError, port.UnknownKindError)

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class SuiteMemory(Record):
    """What the operator remembers of a suite."""

    runs: Digests[observed.OwnedRun | None] | None = None  # so that a look reads only those that have changed
    specification: tuple[int, observed.Specification] | None = None  # with the generation that it is of
    outcomes: observed.Memory = field(default_factory=observed.Memory)  # of the requests so far
    has_outcome: bool = False  # whether the last look ended with one, and nothing has happened since
    # Of accepted rounds one value for each run and quantity, and the fingerprint of each point, while a round is being
    # evaluated; empty otherwise, as the next evaluation is days away. `observed.MAX_KEPT_POINTS` limits it.
    rounds: list[tuple[observed.RoundRuns, MeasuredRound]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class SuiteReconciler(Reconciler[SuiteMemory]):
    """Reconciles suites."""

    runs_known: Callable[[], Awaitable[None]] | None = None  # waits for the queue of runs, which is filled first
    records: Records[SuiteMemory] = field(default_factory=lambda: Records(SuiteMemory))
    # Held while a round of any suite is evaluated, which takes much memory and processor time.
    judging: asyncio.Lock = field(default_factory=asyncio.Lock)
    judged: SuiteMemory | None = None  # the suite whose round was evaluated last

    async def look(self, body: Body) -> tuple[float | None, bool]:
        """Observe a suite, decide, write its status, perform a request; after one, the next look follows at once."""
        memory = self.records[body["metadata"]["uid"]]
        if self.runs_known is not None:
            await self.runs_known()
            self.runs_known = None
            await self.spread(memory)
            if self.stopping.is_set():
                return None, False
        with self.instruments.step("observe"):
            seen = await self._observe(body["metadata"], memory)
        if seen is None:
            return observed.LONGEST_WAIT_SECONDS, False
        with self.instruments.step("decide"):
            decision = step(seen)
        suite, request = seen.suite, decision.request
        if not isinstance(request, observed.GetRun | observed.Judge):
            memory.rounds.clear()
        with self.instruments.step("say"):
            patch = next((action for action in decision.actions if isinstance(action, observed.PatchStatus)), None)
            if patch is not None:
                # It is written even if it is the same: that fails if another operator has written one since.
                version = suite.resource_version
                await self.kube.patch_status(SUITE, suite.name, suite.namespace, patch.status, version=version)
                for action in decision.actions:
                    if isinstance(action, Event):
                        self.post(body, action)
        if request is None:
            return (observed.LONGEST_WAIT_SECONDS if decision.again_after is None else decision.again_after), False
        with self.instruments.step("act"):
            if isinstance(request, observed.Judge):
                outcome: observed.Outcome = await self._judge(request, suite, memory)
            else:
                outcome = await perform(request, suite, self.kube, now=self.now)
            memory.outcomes, memory.has_outcome = memory.outcomes.after(outcome), True
        return 0.0, True

    async def _observe(self, metadata: Body, memory: SuiteMemory) -> observed.Observed | None:
        """Observe a suite; None if it is gone, or has a status of another version."""
        document = await self.kube.get(SUITE, metadata["name"], metadata["namespace"])
        if document is None or document["metadata"]["uid"] != metadata["uid"]:
            return None
        memory.has_outcome &= not memory.was_woken
        generation = document["metadata"]["generation"]
        if memory.specification is None or memory.specification[0] != generation:
            # All variants are planned, which would block the event loop for tens of milliseconds.
            memory.specification = generation, await asyncio.to_thread(observed.read_specification, dict(document))
        try:
            status = BenchmarkSuiteStatus.model_validate(document.get("status") or {})
        except ValidationError as error:
            place = f"{metadata['namespace']}/{metadata['name']}"
            _log.error("suite %s has a status of another version: %s", place, error)
            return None
        suite = observed.Suite(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            generation=generation,
            resource_version=document["metadata"]["resourceVersion"],
            is_deleted="deletionTimestamp" in document["metadata"],
            annotations=document["metadata"].get("annotations") or {},
            specification=memory.specification[1],
            status=status,
        )
        # There may be thousands of runs, and the active one changes several times a minute.
        if memory.runs is None:
            memory.runs = Digests(RUN, partial(owned_run, suite.name, suite.uid), page_size=_PAGE_SIZE)
        try:
            runs = await memory.runs.look(self.kube, namespace=suite.namespace, labels={LABEL_SUITE: suite.name})
        except BaseException:
            # The API server may have been restored to an earlier state, with other objects under the same versions.
            memory.runs.forget()
            raise
        listed, ceph_version, asked = tuple(run for run in runs if run is not None), "", suite.specification.suite
        if asked is not None:
            specs = (variant_spec(asked.spec.run, variant) for variant in asked.spec.variants)
            storages = [storage for spec in specs if isinstance(storage := spec.get("storage"), dict)]
            ceph_version = await answer_look(versions_of(storages, suite.namespace, self.settings), self.kube)
        memory.outcomes = memory.outcomes if memory.has_outcome else memory.outcomes.woken(listed)
        memory.has_outcome = False
        return observed.Observed(
            suite=suite, listed=listed, now=self.now(), ceph_version=ceph_version, memory=memory.outcomes
        )

    async def _judge(
        self, action: observed.Judge, suite: observed.Suite, memory: SuiteMemory
    ) -> observed.RecordedEvaluation:
        asked = suite.specification.suite
        if asked is None:
            raise ValueError("an invalid suite has no round to judge")
        spec, accepted = asked.spec, list[MeasuredRound]()
        async with self.judging:
            # An evaluation that failed keeps its rounds for the next one, until another suite needs the memory.
            if self.judged is not None and self.judged is not memory:
                self.judged.rounds.clear()
            self.judged = memory
            memory.rounds = [(runs, values) for runs, values in memory.rounds if runs in action.baseline]
            for runs in action.baseline:
                measured = next((values for earlier, values in memory.rounds if earlier == runs), None)
                if measured is None:
                    results = await _round(runs, spec, suite.namespace, self.kube)
                    measured = sharing(await asyncio.to_thread(results.measured), (it for _, it in memory.rounds))
                    # Kept at once, so that a later failure does not discard it.
                    memory.rounds.append((runs, measured))
                accepted.append(measured)
            pinned = [measured for measured in accepted if measured.minute in action.pinned]
            current = await _round(action.round, spec, suite.namespace, self.kube)

            def judgement() -> observed.RecordedEvaluation:
                return recorded_evaluation(
                    action, current, evaluate_round(spec, current, accepted=accepted, pinned=pinned)
                )

            return await asyncio.to_thread(judgement)


def owned_run(suite: str, uid: str, obj: Object) -> observed.OwnedRun | None:
    """Read a run; None if it is not one of the suite by owner and name. Users may change labels."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return named_run(suite, uid, obj) if any(owner["uid"] == uid for owner in owners) else None


def named_run(suite: str, uid: str, obj: Object) -> observed.OwnedRun | None:
    """Read a run of any owner; None if its name is not a turn of the suite with that name and UID."""
    metadata = obj["metadata"]
    turn = turn_in_name(suite, uid, metadata["name"])
    if turn is None:
        return None
    return observed.OwnedRun(
        name=metadata["name"],
        uid=metadata["uid"],
        variant=turn[0],
        minute=turn[1],
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        measures=measured_digest(obj.get("spec") or {}),
        is_finished=is_over(obj),
        has_numbers=has_numbers(obj),
        is_deleting="deletionTimestamp" in metadata,
    )


async def perform(
    request: observed.CreateRun | observed.DeleteRun | observed.GetRun | observed.DryRun,
    suite: observed.Suite,
    kube: Kube,
    *,
    now: Callable[[], datetime],
) -> observed.Outcome:
    """Perform a request of a suite, and return its outcome. ApiError: the API server did not decide."""
    match request:
        case observed.CreateRun():
            try:
                await kube.create(request.run)
            except _REFUSALS as error:
                return observed.RunRefusal(name=request.name, time=now(), message=_reason(error))
            run = await kube.get(RUN, request.name, suite.namespace)
            if run is None:
                asked = f"create {RUN.kind} {suite.namespace}/{request.name}"
                raise port.ConflictError(asked, "it was deleted meanwhile")
            return _checked(run, suite, measured_digest(request.run["spec"]), now())
        case observed.GetRun():
            run = await kube.get(RUN, request.name, suite.namespace)
            if run is None:
                return observed.Absent(name=request.name)
            return _checked(run, suite, request.measures, now(), seen_uid=request.uid)
        case observed.DeleteRun():
            await kube.delete(RUN, request.name, suite.namespace, uid=request.uid)
            return observed.Deleted(uid=request.uid)
        case observed.DryRun():
            refusal: dict[str, str] = {}
            for variant, wanted in request.runs.items():
                try:
                    await kube.create(wanted, dry_run=True)
                except _REFUSALS as error:
                    refusal = {"variant": variant, "message": _reason(error)}
                    break
            return observed.Checked(digest=request.digest, time=now(), **refusal)


def _checked(
    run_object: Object, suite: observed.Suite, measures: str, time: datetime, *, seen_uid: str = ""
) -> observed.OwnedRun | observed.RunRefusal:
    """Return a run if the suite owns it and it measures `measures`; a run seen before counts in any case."""
    was_seen, name = run_object["metadata"]["uid"] == seen_uid, run_object["metadata"]["name"]
    run = (named_run if was_seen else owned_run)(suite.name, suite.uid, run_object)
    if run is not None and (was_seen or not measures or run.measures == measures):
        return run
    message = "exists and does not belong to this suite"
    if run is not None:
        message = (
            "exists, but its specification differs from the suite's: another user created it, or an admission policy "
            "changed it (exempt BenchmarkRuns with the label plimsoll.dev/suite from the policy, or set the same "
            "fields in spec.run)"
        )
    return observed.RunRefusal(name=name, time=time, message=message, is_taken=True)


def _reason(error: port.ApiError) -> str:
    """Return the API server's answer; raises UnauthorizedError: outdated credentials say nothing about the run."""
    if isinstance(error, port.UnauthorizedError):
        raise error
    return error.reason


async def _round(runs: observed.RoundRuns, spec: SuiteSpec, namespace: str, kube: Kube) -> RoundResults:
    results = {
        variant: {name: await _results_of(name, uid, namespace, kube) for name, uid in of_variant.items()}
        for variant, of_variant in runs.runs.items()
    }
    return RoundResults(minute=runs.minute, digest=runs.digest, repeat=spec.repeat, runs=results)


async def _results_of(run: str, uid: str, namespace: str, kube: Kube) -> Sequence[BenchmarkResult]:
    """Return the results of a run by name; none if one of them cannot be read, so that the run counts as missing."""
    labels = {naming.LABEL_RUN: naming.label_value(run)}
    results: dict[str, BenchmarkResult] = {}
    try:
        async for page in kube.pages(RESULT, size=RESULTS_PAGE_SIZE, namespace=namespace, labels=labels):
            of_run = [obj for obj in page if obj.get("spec", {}).get("runUid") == uid]
            read = await asyncio.to_thread(list, map(projected, of_run))
            results |= {result.metadata.name: result for result in read}
    except ValidationError as error:
        _log.warning("a result of run %s/%s is not of this version: %s", namespace, run, error)
        return ()
    return [results[name] for name in sorted(results)]
