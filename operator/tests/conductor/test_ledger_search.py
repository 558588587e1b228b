"""The trials of a search that are recorded: which keep their distributions, and the size of a result."""

from pathlib import Path

import pytest

from plimsoll.api.environment import Environment
from plimsoll.api.line import MOST_STORM_PROBES, Ending, Line, Probe, ProbeOutcome
from plimsoll.api.names import AbortReason, Operation, Outcome, Verdict
from plimsoll.api.operation import OperationResult
from plimsoll.api.result import Abort, Finding, Trial
from plimsoll.api.run import Disturbance
from plimsoll.api.status import TrialKey
from plimsoll.api.storage import DisturbedOsds, OsdsAway
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.sink import FilesSink
from plimsoll.conductor.size import MAX_STATUS_BYTES
from plimsoll.plan.document import PLAN_FILE
from support.full_documents import FACTS, full_operation, worst_fields
from support.simulation import ROUGH_SEARCH, search_plan

_LINE = 3_000.0


def trial_of(key: TrialKey, load: float, judged: ProbeOutcome | None = None, **fields: object) -> Trial:
    shown = judged or (ProbeOutcome.MET if load < _LINE else ProbeOutcome.LATE)
    return Trial.model_validate(
        {
            "passNumber": key.pass_number,
            "attempt": key.attempt,
            "epoch": "e" * 36,
            "clients": (0,),
            "probe": Probe(offered=load, achieved=load, depth_full_percent=12.345678901234567, outcome=shown),
            "outcome": Outcome.MEASURED,
            "startedAt": "2026-01-01T00:00:00.000Z",
            "finishedAt": "2026-01-01T00:00:00.000Z",
            "verdict": Verdict.VALID,
            **fields,
        }
    )


def searched(ledger: Ledger, *operations: OperationResult) -> Line:
    """Record a whole search whose storage breaks at the line."""
    while (key := ledger.next_trial()) is not None:
        offer = ledger.offer(key)
        assert offer is not None
        ledger.add("w-000", trial_of(key, offer.load, operations=operations))
    line = ledger.status("w-000", None).line
    assert line is not None
    return line


STORM = Disturbance(osds=DisturbedOsds(action="Out"))


@pytest.mark.parametrize(
    ("calm_line", "storm_line", "loads"),
    [
        (_LINE, 1_100.0, [1500, 750, 3000]),
        (100_000.0, 100_000.0, [10_000, 20_000]),  # the calm storage did not break at the limit
        (0.0, 0.0, [2]),  # it broke at the lowest load, below which nothing is worth many disturbances
    ],
)
def test_a_search_for_the_storm_line_follows_that_for_the_calm_line_and_begins_at_half_of_it(
    calm_line: float, storm_line: float, loads: list[float]
) -> None:
    plan = search_plan()
    (calm,) = plan.points
    storm = calm.model_copy(update={"name": "w-000-storm", "calm": "w-000", "disturb": STORM})
    ledger = Ledger(plan.model_copy(update={"points": (calm, storm), "order": ((0, 1), (0, 1))}))
    probes: dict[str, list[float]] = {"w-000": [], "w-000-storm": []}
    while (key := ledger.next_trial()) is not None:
        offer = ledger.offer(key)
        assert offer is not None
        line = storm_line if key.point == storm.name else calm_line
        outcome = ProbeOutcome.MET if offer.load < line else ProbeOutcome.LATE
        assert not probes[storm.name] or key.point == storm.name
        probes[key.point].append(offer.load)
        ledger.add(key.point, trial_of(key, offer.load, outcome))
    calm_status, status = (ledger.status(point.name, None) for point in (calm, storm))
    assert calm_status.line is not None
    assert status.line is not None
    assert calm_status.line.storm is None
    assert status.line.storm == OsdsAway(count=STORM.osds.count, action=STORM.osds.action)
    assert probes[storm.name][: len(loads)] == pytest.approx(loads, rel=0.02)
    assert len(probes[storm.name]) <= (MOST_STORM_PROBES if calm_line else 1)
    highest = calm_status.line.high or ROUGH_SEARCH.limit
    assert max(probes[storm.name]) <= (highest or 0)
    if storm_line and storm_line < calm_line:
        assert (status.line.low or 0) < storm_line < (status.line.high or 0)


def test_only_the_trials_next_to_the_line_keep_their_histograms() -> None:
    ledger = Ledger(search_plan())
    line = searched(ledger, full_operation(Operation.READ, 1))
    assert line.estimate is not None
    loads: dict[bool, list[float]] = {True: [], False: []}
    for trial in ledger.trials["w-000"]:
        assert trial.probe is not None
        assert trial.operations[0].latency.percentiles
        loads[trial.operations[0].latency.histogram is not None].append(trial.probe.offered)
    assert len(loads[True]) == 4
    below = max((load for load in loads[False] if load <= line.estimate), default=0)
    above = min((load for load in loads[False] if load > line.estimate), default=10**9)
    assert all(below <= load <= above for load in loads[True])
    assert sum(load <= line.estimate for load in loads[True]) == 2


def test_while_loads_climb_the_last_trials_keep_their_histograms() -> None:
    ledger = Ledger(search_plan())
    for load in (400.0, 800.0, 1600.0):
        key = ledger.next_trial()
        assert key is not None
        ledger.add("w-000", trial_of(key, load, operations=(full_operation(Operation.READ, 1),)))
    kept = [trial.operations[0].latency.histogram is not None for trial in ledger.trials["w-000"]]
    assert kept == [False, True, True]


async def test_files_know_which_searches_ended(tmp_path: Path) -> None:
    plan = search_plan(points=2, searches=2)
    (tmp_path / PLAN_FILE).write_text(plan.model_dump_json())
    sink, ledger = FilesSink(tmp_path), Ledger(plan)
    for point in plan.points:
        await sink.record(point.name, ledger.status(point.name, None))
    assert (await sink.load()).ended == set()
    done = Ledger(search_plan())
    searched(done)
    await sink.record("w-000", done.status("w-000", None))
    assert (await sink.load()).ended == {"w-000"}


def test_an_offer_belongs_to_the_next_attempt_only() -> None:
    ledger = Ledger(search_plan(points=2))
    first = TrialKey(point="w-000", pass_number=0, attempt=0)
    offer = ledger.offer(first)
    assert offer is not None
    assert offer.load == 400
    assert ledger.offer(TrialKey(point="w-000", pass_number=1, attempt=0)) is None
    assert ledger.offer(TrialKey(point="w-001", pass_number=0, attempt=0)) is None


@pytest.mark.parametrize("verdict", [Verdict.VALID, Verdict.INVALID])
def test_loads_without_an_outcome_do_not_use_up_the_probes(verdict: Verdict) -> None:
    ledger, loads = Ledger(search_plan()), list[float]()
    while (key := ledger.next_trial()) is not None:
        offer = ledger.offer(key)
        assert offer is not None
        loads.append(offer.load)
        is_known = offer.load < _LINE
        judged, its_verdict = (None, Verdict.VALID) if is_known else (ProbeOutcome.UNKNOWN, verdict)
        ledger.add("w-000", trial_of(key, offer.load, judged, verdict=its_verdict))
    assert max(map(loads.count, loads)) <= 12
    line = ledger.status("w-000", None).line
    assert line is not None
    assert (line.ending, line.estimate) == (Ending.PROBES_DO_NOT_COUNT, None)


def test_the_first_attempts_of_a_search_keep_their_numbers_and_have_a_line_of_their_own() -> None:
    """The storage spoils the first attempt at every third load below the line."""
    ledger, numbers = Ledger(search_plan()), (full_operation(Operation.READ, 1),)
    stalled = Finding(reason="Stalled", verdict=Verdict.INVALID, message="m")
    while (key := ledger.next_trial()) is not None:
        offer = ledger.offer(key)
        assert offer is not None
        outcome = ProbeOutcome.MET if offer.load < _LINE else ProbeOutcome.LATE
        is_spoiled = outcome is ProbeOutcome.MET and key.pass_number % 3 == 0 and not key.attempt
        changes = {"verdict": Verdict.INVALID, "findings": (stalled,)} if is_spoiled else {}
        trial = trial_of(
            key, offer.load, ProbeOutcome.UNKNOWN if is_spoiled else outcome, operations=numbers, **changes
        )
        ledger.add("w-000", trial)
    status = ledger.status("w-000", None)
    spoiled = [trial for trial in status.trials if trial.verdict is Verdict.INVALID]
    assert spoiled
    assert all(trial.operations[0].latency.percentiles for trial in spoiled)
    assert status.line is not None
    assert status.first_line is not None
    assert status.first_line.ending is status.line.ending
    assert (status.first_line.low or 0) < (status.line.low or 0)


def test_a_search_whose_first_attempts_count_has_one_line() -> None:
    ledger = Ledger(search_plan())
    searched(ledger)
    assert ledger.status("w-000", None).first_line is None


def test_the_largest_search_stays_below_the_limit_of_a_result() -> None:
    """40 probes of a mixed workload with syncs on 1000 clients, each repeated twice, and 20 interruptions."""
    ledger = Ledger(search_plan())
    rest = worst_fields()
    interrupted = Abort(reason=AbortReason.INTERRUPTED, message="suspended")
    chances = iter([*[ProbeOutcome.MET, ProbeOutcome.LATE] * 20])
    while (key := ledger.next_trial()) is not None:
        offer = ledger.offer(key)
        assert offer is not None
        free = 20 if key.pass_number == 0 else 0
        if key.attempt < free:
            aborted = {"outcome": Outcome.ABORTED, "verdict": Verdict.INVALID, "abort": interrupted}
            trial = trial_of(key, offer.load, ProbeOutcome.UNKNOWN, **aborted)
        elif key.attempt < free + 2:
            trial = trial_of(key, offer.load, ProbeOutcome.UNKNOWN, verdict=Verdict.INVALID, **rest)
        else:
            trial = trial_of(key, offer.load, next(chances), verdict=Verdict.SUSPECT, **rest)
        ledger.add("w-000", trial)
    status = ledger.status("w-000", Environment.model_validate({"nodes": ["node-" + "x" * 40] * 64, **FACTS}))
    assert status.final
    assert len(status.trials) == 140
    size = len(status.model_dump_json(exclude_none=True))
    assert size < MAX_STATUS_BYTES, size
    last = [trial for trial in status.trials if trial.attempt >= 2 and not trial.abort]
    assert all(trial.operations[0].latency.percentiles for trial in last[-39:])
    assert any(trial.operations[0].latency.histogram for trial in status.trials if trial.operations)
