"""Runs a case's search: trials whose outcomes the case determines, through the ledger of a real conductor."""

from corpus.searched import Searched
from plimsoll.api.line import LineSearch, Objective, Probe, ProbeOutcome
from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.conductor.ledger import Ledger
from support.simulation import search_plan


def search(searched: Searched) -> ResultStatus:
    """Return the status of the result of a search that ended."""
    plan = search_plan(clients=1)
    asked = LineSearch(
        start=searched.start,
        limit=searched.limit,
        precision_percent=searched.precision_percent,
        objectives=(Objective(percentile="99", latency="5ms"),),
    )
    point = plan.points[0].model_copy(update={"line": asked})
    ledger = Ledger(plan.model_copy(update={"points": (point,)}))
    while (key := ledger.next_trial()) is not None:
        offer = ledger.offer(key)
        assert offer is not None
        outcome = ProbeOutcome.LATE if _breaks(searched, offer.load, key.pass_number) else ProbeOutcome.MET
        trial = Trial(
            pass_number=key.pass_number,
            attempt=key.attempt,
            epoch="e",
            clients=(0,),
            probe=Probe(offered=offer.load, achieved=offer.load, depth_full_percent=0, outcome=outcome),
            outcome=Outcome.MEASURED,
            started_at="",
            finished_at="",
            verdict=Verdict.VALID,
        )
        ledger.add(point.name, trial)
    return ledger.status(point.name, None)


def _breaks(searched: Searched, load: float, number: int) -> bool:
    seen = load / (1 - searched.slower_percent / 100) ** number
    return any(low <= seen and (high is None or seen < high) for low, high in searched.breaks)
