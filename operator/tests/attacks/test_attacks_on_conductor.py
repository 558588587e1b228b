"""ATTACK: failing tests that prove defects of searches for the line; each says what should happen."""

import pytest

from plimsoll.api.line import Probe, ProbeOutcome
from plimsoll.api.names import Outcome, RunPhase, Verdict
from plimsoll.api.result import Finding, Trial
from plimsoll.api.state import TrialKey
from plimsoll.conductor.ledger import Ledger
from support.searching import SEARCH, SearchSimulation, search_plan


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


# ATTACK: docs/trust.md says that a point with replaced attempts is Suspect (AttemptsReplaced); a search is Valid.
def test_a_search_whose_every_load_was_tried_until_it_was_valid_is_suspect() -> None:
    def judge(key: TrialKey, load: float) -> Trial:
        if key.attempt < 2:
            return trial(key.pass_number, key.attempt, load, ProbeOutcome.UNKNOWN, Verdict.INVALID, "ClientStalled")
        return trial(key.pass_number, key.attempt, load, outcome(load), Verdict.VALID)

    ledger, seen = played(judge)
    status = ledger.status("w-000", None)
    print(len(seen), status.line, status.verdict, status.findings)
    assert status.verdict is not Verdict.VALID


# ATTACK: one probe of 40 counts, so the "line" is the prior; the verdict is Valid, without any finding.
def test_a_search_of_which_one_probe_counts_is_not_valid() -> None:
    def judge(key: TrialKey, load: float) -> Trial:
        if key.pass_number:
            return trial(key.pass_number, key.attempt, load, ProbeOutcome.UNKNOWN, Verdict.INVALID, "ClientStalled")
        return trial(key.pass_number, key.attempt, load, outcome(load), Verdict.VALID)

    ledger, seen = played(judge)
    status = ledger.status("w-000", None)
    print(len(seen), status.line, status.verdict, status.findings)
    assert status.verdict is not Verdict.VALID


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


def stored_search() -> SearchSimulation:
    simulation = SearchSimulation(search_plan())
    while len(simulation.stored.get("w-000", ())) < 6:
        if not simulation.work():
            for agent in simulation.agents:
                simulation.poll(agent)
            simulation.pass_time(0.2)
    return simulation


def edited(simulation: SearchSimulation, trials: tuple[Trial, ...]) -> None:
    simulation.stored["w-000"] = trials
    simulation.stored_state = None
    simulation.crash()
    simulation.settle()


# ATTACK: a hole in the pass numbers makes the conductor measure a recorded key again, then die of a ValueError, for ever.
def test_a_hole_in_the_recorded_probes_does_not_kill_every_conductor() -> None:
    simulation = stored_search()
    kept = simulation.stored["w-000"]
    edited(simulation, (*kept[:2], *kept[3:]))
    assert simulation.phase is RunPhase.COMPLETE


# ATTACK: a recorded trial without `probe` (as one of a conductor that was replaced by another version) does the same.
def test_a_recorded_trial_without_a_load_does_not_kill_every_conductor() -> None:
    simulation = stored_search()
    kept = simulation.stored["w-000"]
    edited(simulation, (*kept[:2], kept[2].model_copy(update={"probe": None}), *kept[3:]))
    assert simulation.phase is RunPhase.COMPLETE


# ATTACK: a recorded load of 0 passes validation (minimum 0), and its logarithm kills the conductor at every start.
def test_a_recorded_load_of_zero_does_not_kill_every_conductor() -> None:
    simulation = stored_search()
    kept = simulation.stored["w-000"]
    assert kept[2].probe is not None
    zero = kept[2].model_copy(update={"probe": kept[2].probe.model_copy(update={"offered": 0.0})})
    edited(simulation, (*kept[:2], zero, *kept[3:]))
    assert simulation.phase is RunPhase.COMPLETE


# ATTACK: a pending attempt decides the load of the next one, whatever its record says: 0 or 1e12 operations per second.
@pytest.mark.parametrize("load", [0.0, 3.0, 1e12])
def test_a_foreign_load_in_a_pending_attempt_is_not_offered(load: float) -> None:
    simulation = stored_search()
    last = simulation.stored["w-000"][-1]
    pending = trial(last.pass_number + 1, 0, load, ProbeOutcome.UNKNOWN, Verdict.INVALID)
    edited(simulation, (*simulation.stored["w-000"], pending))
    assert simulation.phase is RunPhase.COMPLETE
    assert all(SEARCH.start / 1024 <= one <= SEARCH.limit for one in simulation.loads()[:-1])


