"""Existing objects that make a run impossible: a damaged plan, another owner's object, earlier results."""

from plimsoll.api.names import RESULT_KIND
from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle.decision import Ending
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.wording import listed


def obstacle(run: Run, seen: Observed) -> Ending | None:
    """Return which existing or missing object makes a run impossible; None if none does."""
    damage = _plan_damage(run, seen)
    if damage:
        return Ending.failure(Reason.PLAN_DAMAGED, f"the frozen plan is unusable: {damage}")
    if seen.refusal is not None and seen.refusal.reason is Reason.NAME_TAKEN:
        return Ending.failure(Reason.NAME_TAKEN, seen.refusal.message)
    if seen.foreign_results:
        message = (
            f"results of an earlier run with this name exist ({listed(seen.foreign_results)}); delete them and the "
            "run, or rename the run"
        )
        return Ending.failure(Reason.RESULTS_EXIST, message)
    if seen.plan is None and seen.name_taken:
        message = (
            f"{seen.name_taken} does not belong to this run but occupies the plan's name; delete it and the run, or "
            "rename the run"
        )
        return Ending.failure(Reason.NAME_TAKEN, message)
    if seen.plan is None and run.start_time is not None:
        message = "the ConfigMap with the frozen plan was deleted; delete the run and create it again"
        return Ending.failure(Reason.PLAN_MISSING, message)
    return None


def name_still_taken(seen: Observed, limit: int) -> Ending:
    """Return the end of a run whose name the objects of an earlier one keep occupying."""
    first = seen.departing[0]
    message = (
        f"{first} of an earlier run with this name still exists after timeouts.provisionSeconds ({limit} s); check "
        "its finalizers and create the run again once it is gone, or rename the run"
    )
    return Ending.failure(Reason.RESULTS_EXIST if first.startswith(RESULT_KIND) else Reason.NAME_TAKEN, message)


def _plan_damage(run: Run, seen: Observed) -> str:
    """Return why the existing plan is unusable, and the remedy; empty if it is usable."""
    if seen.plan_problem:
        return f"{seen.plan_problem}; delete the run and create it again"
    if seen.plan is None or is_own_plan(run, seen):
        return ""
    return "its digest is not status.planSha256; delete the plan and the run, and create the run again"


def is_own_plan(run: Run, seen: Observed) -> bool:
    """Whether the operator created the plan. It records the digest first; older versions recorded none."""
    recorded = run.status.get("planSha256")
    return recorded == seen.plan_sha256 if recorded else run.start_time is not None
