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
from plimsoll.kube.port import Kube
from plimsoll.reconcile.suites.gather import RUN, owned_run
from plimsoll.suite.rounds.actions import CreateRun, DeleteRun, DryRun, GetRun
from plimsoll.suite.rounds.observed import Absent, Checked, Deleted, Found, Refusal, Suite

_REFUSALS = (ForbiddenError, InvalidError, NotFoundError, UnknownKindError)


async def create_run(action: CreateRun, suite: Suite, kube: Kube, *, now: Callable[[], datetime]) -> Found | Refusal:
    """Create a run; one of the same name that the suite owns is as good.

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
    run = owned_run(suite.name, suite.uid, found)
    if run is None:
        return Refusal(name=action.name, time=now(), message="an object of that name exists", is_taken=True)
    return Found(run=run)


async def get_run(action: GetRun, suite: Suite, kube: Kube) -> Found | Absent:
    """Return a run of the suite by its name.

    Raises:
        ApiError: the API server did not answer.

    """
    found = await kube.get(RUN, action.name, suite.namespace)
    run = owned_run(suite.name, suite.uid, found) if found is not None else None
    return Absent(name=action.name) if run is None else Found(run=run)


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
