"""ATTACK: failing tests that prove defects of searches for the line; each says what should happen."""

import pytest

from plimsoll.api.line import Probe, ProbeOutcome
from plimsoll.api.names import Outcome, RunPhase, Verdict
from plimsoll.api.result import Finding, Trial
from plimsoll.api.state import TrialKey
from plimsoll.conductor.ledger import Ledger
from support.search_simulation import ROUGH_SEARCH as SEARCH, SearchSimulation, search_plan


def trial(number: int, attempt: int, load: float, outcome: ProbeOutcome, verdict: Verdict, reason: str = "") -> Trial:
    found = [Finding(reason=reason, verdict=verdict, message="m", clients=())] if reason else []
    return Trial.model_validate(
        {
            "passNumber": number,
            "attempt": attempt,
            "epoch": "e",
            "clients": (0,),
            "probe": Probe(offered=load, achieved=load, depth_full_percent=0, outcome=outcome),
            "outcome": Outcome.MEASURED,
            "startedAt": "2026-01-01T00:00:00.000Z",
            "finishedAt": "2026-01-01T00:00:00.000Z",
            "verdict": verdict,
            "findings": found,
        }
    )


def played(judge, most: int = 400) -> tuple[Ledger, list[tuple[int, int, float]]]:  # type: ignore[no-untyped-def]
    ledger, seen = Ledger(search_plan()), []
    while (key := ledger.next_trial()) is not None and len(seen) < most:
        offer = ledger.offer(key)
        assert offer is not None
        seen.append((key.pass_number, key.attempt, offer.load))
        ledger.add("w-000", judge(key, offer.load))
    return ledger, seen


def outcome(load: float) -> ProbeOutcome:
    return ProbeOutcome.MET if load < 3000 else ProbeOutcome.LATE


# ATTACK: a run in which nothing works makes 120 attempts, 13 times as many as three repetitions would.
def test_a_search_without_any_valid_probe_gives_up_early() -> None:
    def judge(key: TrialKey, load: float) -> Trial:
        return trial(key.pass_number, key.attempt, load, ProbeOutcome.UNKNOWN, Verdict.INVALID, "ToolFailed")

    _, seen = played(judge)
    assert len(seen) <= 12


# ATTACK: a load whose trials are always Invalid or Unknown blocks the ladder: all other 34 probes have this load.
@pytest.mark.parametrize("verdict", [Verdict.VALID, Verdict.INVALID])
def test_a_load_without_an_outcome_does_not_use_up_all_probes(verdict: Verdict) -> None:
    def judge(key: TrialKey, load: float) -> Trial:
        if load >= 3000:
            return trial(key.pass_number, key.attempt, load, ProbeOutcome.UNKNOWN, verdict)
        return trial(key.pass_number, key.attempt, load, outcome(load), Verdict.VALID)

    ledger, seen = played(judge)
    loads = [load for _, _, load in seen]
    print(ledger.status("w-000", None).line, ledger.status("w-000", None).verdict)
    assert max(map(loads.count, loads)) <= 15
