"""What of the objects that are there makes a run impossible: a damaged plan, a stranger's object, earlier results."""

from plimsoll.api.names import RESULT_KIND
from plimsoll.lifecycle.decision import Ending
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Run


def obstacle(run: Run, seen: Observed) -> Ending | None:
    """Return what of the objects that are there makes a run impossible."""
    damage = _damage(run, seen)
    if damage:
        return Ending(succeeded=False, reason="PlanDamaged", message=f"the frozen plan cannot be used: {damage}")
    if seen.refusal is not None and seen.refusal.reason == "NameTaken":
        return Ending(succeeded=False, reason="NameTaken", message=seen.refusal.message)
    if seen.foreign_results:
        names = ", ".join(seen.foreign_results[:3])
        message = f"results of an earlier run of this name exist ({names}); delete them and the run, or rename the run"
        return Ending(succeeded=False, reason="ResultsExist", message=message)
    if seen.plan is None and seen.name_taken:
        message = (
            f"{seen.name_taken} is not this run's, but stands where its plan has to; delete both, or rename the run"
        )
        return Ending(succeeded=False, reason="NameTaken", message=message)
    if seen.plan is None and run.start_time is not None:
        message = "the frozen plan is gone; delete the run and create it anew"
        return Ending(succeeded=False, reason="PlanMissing", message=message)
    return None


def stays(seen: Observed, limit: int) -> Ending:
    """Return the end of a run whose name an earlier one does not give up."""
    first = seen.departing[0]
    message = (
        f"{first} of an earlier run of this name is still there after timeouts.provisionSeconds ({limit} s); look at "
        "its finalizers, and run again when it is gone, or rename the run"
    )
    reason = "ResultsExist" if first.startswith(RESULT_KIND) else "NameTaken"
    return Ending(succeeded=False, reason=reason, message=message)


def _damage(run: Run, seen: Observed) -> str:
    """Return why the plan that is there cannot be used, and the remedy; empty if it can."""
    if seen.plan_problem:
        return f"{seen.plan_problem}; delete the run and create it anew"
    if seen.plan is None or is_own_plan(run, seen):
        return ""
    return (
        "it is not the one that the operator made (status.planSha256); delete it and the run, and create the run anew"
    )


def is_own_plan(run: Run, seen: Observed) -> bool:
    """Tell whether the operator made the plan: it says so first. Of a run that an older one admitted it did not."""
    said = run.status.get("planSha256")
    return said == seen.plan_sha256 if said else run.start_time is not None
