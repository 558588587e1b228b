"""Performs the requests of a suite about its runs. Each may be repeated.

Only a definite refusal is an outcome; whatever a retry may fix raises.
"""

from collections.abc import Callable
from datetime import datetime

from plimsoll.kube.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
    UnknownKindError,
)
from plimsoll.kube.port import Kube, Object
from plimsoll.reconcile.suites.gather import RUN, named_run, owned_run
from plimsoll.suite.digest import measured_digest
from plimsoll.suite.rounds.actions import CreateRun, DeleteRun, DryRun, GetRun
from plimsoll.suite.rounds.observed import Absent, Checked, Deleted, Found, OwnedRun, Refusal, Suite

_OTHER = (
    "exists and does not measure what the suite asks for: somebody else created it, or an admission policy changed it "
    "(exempt BenchmarkRuns with the label plimsoll.dev/suite from the policy, or write what it sets into spec.run)"
)
_REFUSALS = (ForbiddenError, InvalidError, NotFoundError, UnknownKindError)


async def create_run(action: CreateRun, suite: Suite, kube: Kube, *, now: Callable[[], datetime]) -> Found | Refusal:
    """Create a run; one of the same name that the suite owns and that measures the same is as good.

    Raises:
        ApiError: the API server did not decide.

    """
    try:
        await kube.create(action.run)
    except _REFUSALS as error:
        return Refusal(name=action.name, time=now(), message=_reason(error))
    found = await kube.get(RUN, action.name, suite.namespace)
    if found is None:
        raise ConflictError(f"create {RUN.kind} {suite.namespace}/{action.name}", "it was deleted meanwhile")
    problem, run = _checked(found, suite, measured_digest(action.run["spec"]))
    return Found(run=run) if run else Refusal(name=action.name, time=now(), message=problem, is_taken=True)


async def get_run(action: GetRun, suite: Suite, kube: Kube, *, now: Callable[[], datetime]) -> Found | Absent | Refusal:
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
    return Found(run=run) if run else Refusal(name=action.name, time=now(), message=problem, is_taken=True)


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
