"""Performs the requests of a suite. Each may be repeated.

Only a definite refusal is an outcome; whatever a retry may fix raises.
"""

from collections.abc import Callable
from datetime import datetime

from plimsoll.kube.errors import ForbiddenError, InvalidError, UnauthorizedError
from plimsoll.kube.port import Kube
from plimsoll.reconcile.suites.gather import RUN, is_owned
from plimsoll.suite.rounds.actions import CreateRun, DeleteRun, DryRun
from plimsoll.suite.rounds.observed import Checked, Refusal


async def create_run(action: CreateRun, kube: Kube, *, uid: str, now: Callable[[], datetime]) -> Refusal | None:
    """Create a run of the suite with that UID; return why that was refused, None if it was not.

    Raises:
        ApiError: the API server could not decide.

    """
    try:
        is_created = await kube.create(action.run)
    except UnauthorizedError:
        raise
    except (ForbiddenError, InvalidError) as error:
        return Refusal(name=action.name, time=now(), message=error.reason)
    if is_created:
        return None
    found = await kube.get(RUN, action.name, action.run["metadata"]["namespace"])
    if found is None or is_owned(found, uid):
        return None
    return Refusal(name=action.name, time=now(), message="an object of that name exists", is_taken=True)


async def delete_run(action: DeleteRun, kube: Kube, *, namespace: str) -> None:
    """Delete a run with its UID."""
    await kube.delete(RUN, action.name, namespace, uid=action.uid)


async def check_runs(action: DryRun, kube: Kube, *, now: Callable[[], datetime]) -> Checked:
    """Have the API server check the run of every variant, until it refuses one.

    Raises:
        ApiError: the API server could not decide.

    """
    for variant, run in action.runs.items():
        try:
            await kube.create(run, dry_run=True)
        except UnauthorizedError:
            raise
        except (ForbiddenError, InvalidError) as error:
            return Checked(digest=action.digest, time=now(), variant=variant, message=error.reason)
    return Checked(digest=action.digest, time=now())
