"""Recorded trials, missing ones, and the size of a result."""

import pytest

from plimsoll.api.environment import Environment, PlatformEnvironment
from plimsoll.api.names import AbortReason, Operation, Outcome, Verdict
from plimsoll.api.result import (
    Abort,
    ClientPlace,
    ClientSummary,
    Trial,
)
from plimsoll.api.status import TrialKey
from plimsoll.conductor.ledger import MAX_UNCHARGED_ATTEMPTS, Ledger, is_settled
from plimsoll.conductor.size import MAX_STATUS_BYTES
from plimsoll.plan.fingerprint import fingerprint
from support.client_documents import make_plan
from support.full_documents import FACTS, HOST, full_operation, worst_fields

LIMIT_OF_A_RESULT = 256 * 2**10


def make_trial(pass_number: int = 0, attempt: int = 0, **fields: object) -> Trial:
    return Trial.model_validate(
        {
            "passNumber": pass_number,
            "attempt": attempt,
            "epoch": "e",
            "clients": (0,),
            "outcome": Outcome.MEASURED,
            "startedAt": "",
            "finishedAt": "",
            "verdict": Verdict.VALID,
            **fields,
        }
    )


def aborted(attempt: int, reason: AbortReason = AbortReason.CLIENT_LOST) -> Trial:
    abort = Abort(reason=reason, message="gone")
    return make_trial(attempt=attempt, outcome=Outcome.ABORTED, verdict=Verdict.INVALID, abort=abort)


def test_the_first_missing_trial_is_next_and_a_retry_comes_at_once() -> None:
    plan = make_plan(points=2, repetitions=2)
    ledger = Ledger(plan)
    first, second = (plan.points[index].name for index in plan.order[0])
    assert ledger.next_trial() == TrialKey(point=first, pass_number=0, attempt=0)
    ledger.add(first, aborted(0))
    assert ledger.next_trial() == TrialKey(point=first, pass_number=0, attempt=1)
    ledger.add(first, make_trial(attempt=1))
    assert ledger.next_trial() == TrialKey(point=second, pass_number=0, attempt=0)
    assert (ledger.done, ledger.total) == (1, 4)


def test_a_suspect_trial_is_not_repeated() -> None:
    assert is_settled([make_trial(verdict=Verdict.SUSPECT)])


def test_an_attempt_cannot_be_recorded_twice() -> None:
    ledger = Ledger(make_plan())
    ledger.add("w-000", make_trial())
    with pytest.raises(ValueError, match="is already recorded"):
        ledger.add("w-000", make_trial())


def test_three_aborted_attempts_settle_a_trial_but_interruptions_do_not_count() -> None:
    lost = [aborted(number) for number in range(3)]
    interrupted = [aborted(number, AbortReason.INTERRUPTED) for number in range(MAX_UNCHARGED_ATTEMPTS + 1)]
    assert is_settled(lost)
    assert not is_settled(lost[:2])
    assert not is_settled([*interrupted[1:], *lost[:2]])
    assert is_settled([*interrupted, *lost[:2]]), "so many that the last one counts"


def test_attempts_that_a_restart_of_the_conductor_ended_are_used_up_because_they_may_have_caused_it() -> None:
    assert is_settled([aborted(number, AbortReason.CONDUCTOR_RESTARTED) for number in range(3)])


def test_a_point_has_no_verdict_before_its_last_trial() -> None:
    ledger = Ledger(make_plan(points=1, repetitions=2))
    ledger.add("w-000", make_trial())
    assert ledger.status("w-000", None).verdict is None
    ledger.add("w-000", make_trial(pass_number=1))
    status = ledger.status("w-000", None)
    assert status.final
    assert status.verdict is Verdict.VALID


def test_the_largest_result_stays_below_its_limit() -> None:
    """10 repetitions of a mixed workload with syncs on 1000 clients, each repeated twice before it counted."""
    plan = make_plan(points=1, repetitions=10)
    ledger = Ledger(plan)
    rest = worst_fields()
    for number in range(plan.repetitions):
        for attempt in range(2):
            ledger.add("w-000", make_trial(number, attempt, verdict=Verdict.INVALID, **rest))
        ledger.add("w-000", make_trial(number, 2, verdict=Verdict.SUSPECT, **rest))
    environment = Environment.model_validate({"nodes": ["node-" + "x" * 40] * 64, **FACTS})
    status = ledger.status("w-000", environment)
    text = status.model_dump_json(exclude_none=True)
    assert len(text) < LIMIT_OF_A_RESULT, len(text)
    assert status.trials[0].place_digests
    assert all(any("left out" in line for line in trial.warnings) for trial in status.trials if trial.attempt == 2)


def invalid(attempt: int) -> Trial:
    slowest = (ClientSummary(client=0, node="n", start_offset_seconds=0, runtime_seconds=4, iops=1, host=HOST),)
    operations = (full_operation(Operation.READ, 1),)
    return make_trial(attempt=attempt, verdict=Verdict.INVALID, slowest=slowest, operations=operations)


def test_an_invalid_attempt_keeps_its_clients_but_nothing_to_merge() -> None:
    ledger = Ledger(make_plan(points=1, repetitions=1))
    ledger.add("w-000", invalid(0))
    (trial,) = ledger.trials["w-000"]
    assert trial.slowest == invalid(0).slowest
    (before,), (after,) = invalid(0).operations, trial.operations
    assert (after.series, after.latency.histogram) == (None, None)
    assert (after.rates, after.latency.percentiles) == (before.rates, before.latency.percentiles)
    assert after.p99_steadiness == before.p99_steadiness


def test_a_repeated_attempt_keeps_its_rates_and_percentiles() -> None:
    ledger = Ledger(make_plan(points=1, repetitions=2))
    ledger.add("w-000", invalid(0))
    ledger.add("w-000", invalid(1))
    ledger.add("w-000", make_trial(pass_number=1))
    repeated, last, other = ledger.trials["w-000"]
    assert (repeated.slowest, repeated.operations[0].latency.histogram) == ((), None)
    assert repeated.operations[0].latency.percentiles == last.operations[0].latency.percentiles != {}
    assert repeated.operations[0].rates == last.operations[0].rates
    assert last.slowest
    assert other == make_trial(pass_number=1)


def test_a_result_contains_platform_clients_and_fingerprint() -> None:
    platform = PlatformEnvironment(kubernetes="v1.34.4")
    plan = make_plan(points=1, repetitions=1).model_copy(update={"environment": platform})
    ledger = Ledger(plan)
    ledger.add("w-000", make_trial())
    status = ledger.status("w-000", Environment(nodes=("a",), kernel="6.1"))
    assert status.environment.document() == {"kubernetes": "v1.34.4", "nodes": ["a"], "kernel": "6.1"}
    assert status.fingerprint == fingerprint(plan, plan.points[0], status.environment)


def test_a_client_does_not_replace_the_plan_s_platform_facts() -> None:
    platform = PlatformEnvironment(storage_class="slow")
    plan = make_plan(points=1, repetitions=1).model_copy(update={"environment": platform})
    ledger = Ledger(plan)
    ledger.add("w-000", make_trial())
    status = ledger.status("w-000", Environment(nodes=("a",), storage_class="fast"))
    assert status.environment.storage_class == "slow"
    assert status.fingerprint is not None
    assert status.fingerprint.identity["storageClass"] == "slow"


def test_without_clients_there_is_no_fingerprint() -> None:
    ledger = Ledger(make_plan(points=1, repetitions=1))
    ledger.add("w-000", aborted(0))
    assert ledger.status("w-000", None).fingerprint is None


def test_a_trial_keeps_only_the_places_that_earlier_trials_of_its_point_do_not_show() -> None:
    first = [ClientPlace(client=number, node=f"node-{number}", volume="disk") for number in range(2)]
    moved = [first[0], ClientPlace(client=1, node="node-9", volume="disk")]
    plan = make_plan(points=2, clients=2, repetitions=3)
    ledger = Ledger(plan)
    ledger.add("w-000", make_trial(0, places=first))
    ledger.add("w-001", make_trial(0, places=first))
    # Another conductor continues with what is recorded.
    ledger = Ledger(plan, {name: ledger.trials[name] for name in ("w-000", "w-001")})
    for number in (1, 2):
        ledger.add("w-000", make_trial(number, places=moved))
        ledger.add("w-001", make_trial(number, places=first))
    assert [trial.places for trial in ledger.trials["w-000"]] == [tuple(first), (moved[1],), ()]
    assert [trial.places for trial in ledger.trials["w-001"]] == [tuple(first), (), ()]
    findings = {name: ledger.status(name, None).findings for name in ("w-000", "w-001")}
    assert [(finding.reason, finding.clients) for finding in findings["w-000"]] == [("ClientsChanged", (1,))]
    assert findings["w-001"] == ()


@pytest.mark.parametrize("moved", [(), (7,)])
def test_of_1000_clients_the_names_of_places_go_first_and_changes_are_found_by_their_digests(
    moved: tuple[int, ...],
) -> None:
    places = [ClientPlace(client=n, node=f"node-{n:036}", volume=f"disk-{n:036}") for n in range(1000)]
    later = [place.model_copy(update={"node": "other"}) if place.client in moved else place for place in places]
    plan = make_plan(points=1, clients=2, repetitions=10)
    rest = {
        "operations": tuple(full_operation(kind, 1) for kind in (Operation.READ, Operation.WRITE)),
        "slowest": worst_fields()["slowest"][:1],
    }
    ledger = Ledger(plan)
    for number in range(10):
        ledger.add("w-000", make_trial(number, places=later if number else places, **rest))
        # Another conductor continues with what is stored.
        status = ledger.status("w-000", None)
        ledger = Ledger(plan, {"w-000": status.trials})
    assert len(status.model_dump_json(exclude_none=True)) <= MAX_STATUS_BYTES
    findings = [finding for finding in status.findings if finding.reason == "ClientsChanged"]
    assert [finding.clients for finding in findings] == ([moved] if moved else [])
    first, second = status.trials[:2]
    assert first.place_digests is not None
    assert (first.places, len(first.place_digests.clients)) == ((), 1000)
    assert [bool(trial.place_digests) for trial in (first, second)] == [True, bool(moved)]
    assert [warning.split(" left out")[0] for warning in first.warnings] == ["names of the clients' nodes and volumes"]
    assert all(trial.operations[0].series and trial.slowest for trial in status.trials)
