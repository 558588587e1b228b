"""The sink of a run in a cluster, over the fake API; tests/kube/test_programs.py has it over a real one."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from plimsoll.agent.worker import Armed
from plimsoll.api.environment import Environment
from plimsoll.api.errors import SpecError
from plimsoll.api.line import Ending, Line, LineSearch, Objective
from plimsoll.api.names import AbortReason, LatencyKind, Operation, Outcome, RunPhase, Verdict
from plimsoll.api.operation import Latency, OperationSummary, Statistic
from plimsoll.api.result import Abort, Finding, Matrix, ResultStatus, Summary, Trial
from plimsoll.api.status import RunState, TrialKey
from plimsoll.conductor.sink import CONFIG_MAP, RESULT, KubeSink, ReplacedError, result_display, result_of
from plimsoll.kube import port
from plimsoll.kube.port import ApiError, ForbiddenError, Kind, NotFoundError, TransientError
from plimsoll.lifecycle import naming
from plimsoll.measure.sample import ClientDocument, Clock
from support.client_documents import make_plan
from support.fake_kube import FakeKube, failing
from support.rendezvous import QUICK, PretendedWork, Setting

PLAN = make_plan(points=2)
STATE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "simulated-state", "namespace": "default"}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "_FIRST_PAUSE_SECONDS", 0.001)


@pytest.fixture
async def kube() -> FakeKube:
    """Return the objects that the operator creates."""
    kube = FakeKube()
    await kube.create(STATE)
    for point in PLAN.points:
        document = result_of(PLAN, point, ResultStatus()).model_dump(mode="json", exclude={"status"})
        await kube.create(document)
    kube.requests.clear()
    return kube


def trial(pass_number: int = 0, attempt: int = 0) -> Trial:
    return Trial(
        pass_number=pass_number,
        attempt=attempt,
        epoch="e",
        clients=(0, 1),
        outcome=Outcome.MEASURED,
        started_at="2026-01-01T00:00:00Z",
        finished_at="2026-01-01T00:00:05Z",
        verdict=Verdict.VALID,
    )


def summary(*operations: Operation, p99: float | None = 12_345_678.0) -> Summary:
    return Summary(
        trials=2,
        operations=tuple(
            OperationSummary(
                operation=operation,
                iops=Statistic(trials=2, mean=12_345.6, low=12_000.0, high=12_700.0),
                bytes_per_second=Statistic(trials=2, mean=50 * 2**20),
                percentiles={} if p99 is None else {"99": Statistic(trials=2, mean=p99)},
                latency=Latency(kind=LatencyKind.FULL, count=10),
            )
            for operation in operations
        ),
    )


async def loaded(kube: FakeKube) -> KubeSink:
    """Return the sink of a conductor that starts."""
    sink = KubeSink(kube, PLAN, "default")
    await sink.load()
    return sink


def status_of(kube: FakeKube, number: int) -> dict[str, Any]:
    found: dict[str, Any] = kube.objects("BenchmarkResult")[number]["status"]
    return found


async def test_recorded_trials_are_loaded(kube: FakeKube) -> None:
    sink = KubeSink(kube, PLAN, "default")
    assert await sink.load() == ({"w-000": (), "w-001": ()}, None, {}, set())
    state = RunState(epoch="e", phase=RunPhase.MEASURING, in_flight=TrialKey(point="w-001", pass_number=0, attempt=0))
    await sink.publish(state)
    assert (await KubeSink(kube, PLAN, "default").load()).state == state
    await sink.record("w-001", ResultStatus(trials=(trial(),)))
    over = state.model_copy(update={"in_flight": None})
    assert await KubeSink(kube, PLAN, "default").load() == ({"w-000": (), "w-001": (trial(),)}, over, {}, set())


async def test_a_record_replaces_the_earlier_one(kube: FakeKube) -> None:
    sink = await loaded(kube)
    full = ResultStatus(
        trials=(trial(), trial(1)),
        summary=summary(Operation.READ),
        verdict=Verdict.VALID,
        environment=Environment.model_validate({"kernel": "6.1", "old": "x"}),
        final=True,
    )
    await sink.record("w-000", full)
    assert status_of(kube, 0)["display"]["iops"] == "12,346 ± 350"
    await sink.record("w-000", ResultStatus(trials=(trial(),), environment=Environment(kernel="6.2")))
    assert status_of(kube, 0) == {
        "trials": [trial().model_dump(mode="json", exclude_none=True)],
        "findings": [],
        "environment": {"kernel": "6.2"},
        "final": False,
        "display": {"trials": "0/2"},
    }


async def test_a_short_outage_is_tolerated(kube: FakeKube) -> None:
    sink = KubeSink(kube, PLAN, "default")
    for act in (sink.load, lambda: sink.publish(RunState()), lambda: sink.record("w-000", ResultStatus())):
        kube.interfere = failing(lambda asked: TransientError(asked, "away"), times=3)
        await act()


@pytest.mark.fault(
    "API server",
    "No answer to the conductor",
    "when it writes",
    ends="it retries, then exits with the failed request in its message, and its Job replaces it",
    within="60 s, and 30 s more for a request in flight",
)
async def test_a_long_outage_is_an_error(kube: FakeKube) -> None:
    sink = KubeSink(kube, PLAN, "default", retry_seconds=0.02)
    await sink.load()
    kube.interfere = failing(lambda asked: TransientError(asked, "away"), times=10**6)
    with pytest.raises(TransientError):
        await sink.load()
    with pytest.raises(TransientError, match="patch ConfigMap default/simulated-state: away"):
        await sink.publish(RunState())
    with pytest.raises(TransientError, match="patch ConfigMap default/simulated-state: away"):
        await sink.record("w-000", ResultStatus())  # with a state that could not be written, nothing is recorded
    other = KubeSink(kube, PLAN, "default", retry_seconds=0.02)
    kube.interfere = failing(lambda asked: TransientError(asked, "away"), times=0)
    await other.load()
    kube.interfere = failing(lambda asked: TransientError(asked, "away"), times=10**6)
    with pytest.raises(TransientError, match="patch status of BenchmarkResult default/simulated-w-000: away"):
        await other.record("w-000", ResultStatus())


async def test_a_refusal_is_raised_at_once(kube: FakeKube) -> None:
    sink = await loaded(kube)
    kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=1)
    with pytest.raises(ForbiddenError):
        await sink.record("w-000", ResultStatus())


def begun(epoch: str, t0: int = 0) -> RunState:
    """Return the state of a conductor that has begun the first attempt at w-001."""
    key = TrialKey(point="w-001", pass_number=0, attempt=0)
    return RunState(epoch=epoch, phase=RunPhase.MEASURING, in_flight=key, in_flight_t0_nanoseconds=t0)


Act = Callable[[KubeSink], Awaitable[None]]
ACTS: dict[str, Act] = {
    "note": lambda sink: sink.publish(begun("older", t0=1)),
    "record": lambda sink: sink.record("w-001", ResultStatus(trials=(trial(),), final=True)),
    "failure": lambda sink: sink.publish(RunState(epoch="older", phase=RunPhase.FAILED)),
}


@pytest.mark.fault(
    "Conductor and clients",
    "Two conductors of a run are alive, for example because somebody deleted the Job of the first",
    "in each phase",
    ends="the earlier one stops and overwrites nothing; the later one continues",
    within="15 s",
)
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_a_conductor_that_was_replaced_overwrites_nothing(kube: FakeKube, act: Act) -> None:
    older = await loaded(kube)
    await older.publish(begun("older"))
    newer = await loaded(kube)
    await newer.publish(RunState(epoch="newer", phase=RunPhase.MEASURING))
    await newer.record("w-001", ResultStatus(trials=(trial(), trial(1)), final=True))
    before = [kube.objects(kind) for kind in ("BenchmarkResult", "ConfigMap")]
    with pytest.raises(ReplacedError, match="another conductor of this run has written since; this one stops"):
        await act(older)
    assert [kube.objects(kind) for kind in ("BenchmarkResult", "ConfigMap")] == before
    await newer.record("w-001", ResultStatus(trials=(trial(), trial(1), trial(2)), final=True))


async def test_what_a_replaced_conductor_has_recorded_in_time_is_not_lost(kube: FakeKube) -> None:
    """The one that follows has not seen it, so it starts again."""
    older = await loaded(kube)
    newer = await loaded(kube)
    await ACTS["record"](older)
    with pytest.raises(ReplacedError):
        await newer.record("w-001", ResultStatus())
    assert (await KubeSink(kube, PLAN, "default").load()).trials["w-001"] == (trial(),)


async def test_one_that_slept_since_it_loaded_claims_nothing(kube: FakeKube) -> None:
    sleeping, awake = await loaded(kube), await loaded(kube)
    await awake.publish(begun("awake"))
    with pytest.raises(ReplacedError):
        await sleeping.publish(begun("sleeping"))
    await awake.record("w-001", ResultStatus(trials=(trial(),)))
    (state,) = kube.objects("ConfigMap")
    assert RunState.model_validate_json(state["data"]["state.json"]).epoch == "awake"


async def test_one_that_was_replaced_begins_no_attempt(kube: FakeKube) -> None:
    """Its note would look to the later conductor as if that one had been replaced."""
    earlier = await loaded(kube)
    await earlier.publish(RunState(epoch="earlier", phase=RunPhase.MEASURING))
    later = await loaded(kube)
    await later.publish(RunState(epoch="later", phase=RunPhase.MEASURING))
    with pytest.raises(ReplacedError):
        await earlier.publish(begun("earlier"))
    await later.publish(begun("later"))
    assert status_of(kube, 1)["inFlight"]["attempt"] == 0


async def test_a_write_after_a_change_of_metadata_needs_no_pause(kube: FakeKube) -> None:
    """Otherwise somebody who changes them more often than the pauses last would delay it for ever."""
    sink = KubeSink(kube, PLAN, "default", retry_seconds=0.0)
    await sink.load()
    await change_metadata(kube)
    await sink.record("w-001", ResultStatus(trials=(trial(),)))
    assert len(status_of(kube, 1)["trials"]) == 1


async def lose_answers(kube: FakeKube) -> None:
    """Perform the next change of each kind without an answer."""
    lost = set[str]()

    def once(perform: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def performed(kind: Kind, *rest: Any, **more: Any) -> Any:
            answer = await perform(kind, *rest, **more)
            if kind.kind not in lost:
                lost.add(kind.kind)
                raise TransientError("patch", "the connection broke")
            return answer

        return performed

    kube.patch = once(kube.patch)  # type: ignore[method-assign,assignment]
    kube.patch_status = once(kube.patch_status)  # type: ignore[method-assign,assignment]


async def change_metadata(kube: FakeKube) -> None:
    for kind, name in ((RESULT, naming.result(PLAN.run.name, "w-001")), (CONFIG_MAP, "simulated-state")):
        await kube.patch(kind, name, "default", {"metadata": {"labels": {"example.com/seen": "yes"}}})


async def damage_the_state(kube: FakeKube) -> None:
    await kube.patch(CONFIG_MAP, "simulated-state", "default", {"data": {"state.json": "{"}})


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("disturb", [lose_answers, change_metadata, damage_the_state])
async def test_a_conductor_that_is_alone_continues(
    kube: FakeKube, act: Act, disturb: Callable[[FakeKube], Awaitable[None]]
) -> None:
    sink = await loaded(kube)
    await sink.publish(begun("older"))
    await disturb(kube)
    for _ in range(2):
        await act(sink)


async def test_progress_does_not_wait_for_the_server(kube: FakeKube) -> None:
    sink = KubeSink(kube, PLAN, "default", retry_seconds=5)
    await sink.publish(RunState(phase=RunPhase.MEASURING))
    kube.requests.clear()
    kube.interfere = failing(lambda asked: TransientError(asked, "away"), times=3)
    for done in range(1, 5):
        async with asyncio.timeout(0.5):
            await sink.publish(RunState(phase=RunPhase.MEASURING, trials_done=done))
    assert kube.requests == []
    # A write that a successor depends on waits, and includes all earlier changes.
    await sink.publish(RunState(phase=RunPhase.SETTLING, trials_done=5))
    assert (await sink.load()).state == RunState(phase=RunPhase.SETTLING, trials_done=5)


FLIGHT = RunState(
    phase=RunPhase.MEASURING,
    in_flight=TrialKey(point="w-001", pass_number=2, attempt=1),
    in_flight_since="2026-01-01T00:00:00.000Z",
)
T0 = 1_800_000_000_123_456_789


def attempt_of(state: RunState | None) -> tuple[TrialKey | None, str, int]:
    assert state is not None
    return state.in_flight, state.in_flight_since, state.in_flight_t0_nanoseconds


async def test_an_attempt_and_its_t0_are_stored_before_it_goes_on(kube: FakeKube) -> None:
    """Each takes one write that waits, whatever becomes of the state."""
    sink = await loaded(kube)
    await sink.publish(RunState(phase=RunPhase.MEASURING))
    note = "patch status of BenchmarkResult default/simulated-w-001"
    for state in (FLIGHT, FLIGHT.model_copy(update={"in_flight_t0_nanoseconds": T0})):
        kube.requests.clear()
        await sink.publish(state)
        assert kube.requests.count(note) == 1
        assert attempt_of((await KubeSink(kube, PLAN, "default").load()).state) == attempt_of(state)
        kube.requests.clear()
        await sink.publish(state.model_copy(update={"trials_done": 1}))
        assert note not in kube.requests, "it is stored once"


@pytest.mark.parametrize("claimed", [None, TrialKey(point="w-000", pass_number=0, attempt=0)])
async def test_what_users_make_of_the_state_does_not_hide_an_attempt(kube: FakeKube, claimed: TrialKey | None) -> None:
    started = FLIGHT.model_copy(update={"in_flight_t0_nanoseconds": T0})
    await (await loaded(kube)).publish(started)
    state = started.model_copy(update={"in_flight": claimed}).model_dump_json()
    for data in ({"state.json": state}, {"state.json": None}):
        await kube.patch(CONFIG_MAP, "simulated-state", "default", {"data": data})
        assert attempt_of((await KubeSink(kube, PLAN, "default").load()).state) == attempt_of(started)


class TimedWork(PretendedWork):
    """Notes when the load of each attempt begins."""

    def __init__(self, client: int) -> None:
        super().__init__(client)
        self.begun: list[tuple[str, int]] = []

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        self.begun.append((str(armed.order.trial), time.time_ns()))
        return await super().measure(armed, clock)


async def test_no_client_generates_load_before_it_is_stored_that_it_may(kube: FakeKube, tmp_path: Path) -> None:
    """Not even if the API server takes longer than the lead to T0; and no attempt is late for that."""
    stored, patch_status = dict[str, int](), kube.patch_status

    async def slow(kind: Kind, name: str, namespace: str | None, status: Mapping[str, Any], **more: Any) -> Any:
        note = status.get("inFlight") or {}
        starts = "t0Nanoseconds" in note
        await asyncio.sleep(3 * QUICK.lead if starts else 0)
        answer = await patch_status(kind, name, namespace, status, **more)
        if starts:
            (point,) = (point.name for point in PLAN.points if naming.result(PLAN.run.name, point.name) == name)
            key = TrialKey(point=point, pass_number=note["passNumber"], attempt=note["attempt"])
            stored[str(key)] = time.time_ns()
        return answer

    kube.patch_status = slow  # type: ignore[method-assign]
    setting, works = Setting(tmp_path, PLAN), [TimedWork(client) for client in range(PLAN.clients)]
    async with asyncio.timeout(120):
        conducting = asyncio.create_task(setting.conduct(sink=KubeSink(kube, PLAN, "default")))
        await asyncio.gather(*(setting.agent(work.client, work=work) for work in works))
        assert await conducting == 0
    for work in works:
        assert len(work.begun) == PLAN.repetitions * len(PLAN.points)
        assert all(stored[trial] <= begun for trial, begun in work.begun)


async def test_progress_is_written_in_time(kube: FakeKube) -> None:
    sink = KubeSink(kube, PLAN, "default")
    await sink.publish(RunState(phase=RunPhase.MEASURING))
    await sink.publish(RunState(phase=RunPhase.MEASURING, trials_done=1))
    async with asyncio.timeout(60):
        while (await sink.load()).state != RunState(phase=RunPhase.MEASURING, trials_done=1):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("error", [TransientError, ForbiddenError])
async def test_progress_that_cannot_be_written_is_an_error_later(kube: FakeKube, error: type[ApiError]) -> None:
    sink = KubeSink(kube, PLAN, "default", retry_seconds=0.02)
    await sink.publish(RunState(phase=RunPhase.MEASURING))
    kube.interfere = failing(lambda asked: error(asked, "away"), times=10**6)

    async def publish_until_it_fails() -> None:
        while True:
            await sink.publish(RunState(phase=RunPhase.MEASURING, trials_done=1))
            await asyncio.sleep(0.01)

    async with asyncio.timeout(60):
        with pytest.raises(error):
            await publish_until_it_fails()


async def test_a_conductor_without_rights_ends_although_nothing_changes(kube: FakeKube, tmp_path: Path) -> None:
    """Its RoleBinding is removed first when its run ends; its kubelet may be dead."""
    sink = KubeSink(kube, PLAN, "default")
    sink.progress_seconds = sink.pulse_seconds = 0.05
    setting = Setting(tmp_path, PLAN)
    conducting = asyncio.create_task(setting.conduct(sink=sink))
    async with asyncio.timeout(60):
        while not kube.objects("ConfigMap")[0].get("data"):
            await asyncio.sleep(0.01)
        kube.interfere = failing(lambda asked: ForbiddenError(asked, "no RoleBinding"), times=10**6)
        with pytest.raises(ForbiddenError, match="no RoleBinding"):
            await conducting


async def test_the_last_state_is_written_before_the_end(kube: FakeKube) -> None:
    sink = KubeSink(kube, PLAN, "default")
    for done in (1, 2):
        await sink.publish(RunState(phase=RunPhase.COMPLETE, trials_done=done))
        assert (await sink.load()).state == RunState(phase=RunPhase.COMPLETE, trials_done=done)


async def test_objects_that_the_operator_has_not_created(kube: FakeKube) -> None:
    await kube.delete(RESULT, "simulated-w-001", "default")
    with pytest.raises(NotFoundError, match="get BenchmarkResult default/simulated-w-001: it does not exist"):
        await KubeSink(kube, PLAN, "default").load()
    await kube.delete(CONFIG_MAP, "simulated-state", "default")
    with pytest.raises(NotFoundError, match="get ConfigMap default/simulated-state: it does not exist"):
        await KubeSink(kube, PLAN, "default").load()


async def test_results_of_an_earlier_run_of_that_name(kube: FakeKube) -> None:
    plan = PLAN.model_copy(update={"run": PLAN.run.model_copy(update={"uid": "another"})})
    with pytest.raises(NotFoundError, match="it belongs to another run of that name"):
        await KubeSink(kube, plan, "default").load()


def _damage_state(kube: FakeKube) -> Any:
    return kube.patch(CONFIG_MAP, "simulated-state", "default", {"data": {"state.json": "{"}})


def _damage_result(kube: FakeKube) -> Any:
    return kube.patch_status(RESULT, "simulated-w-000", "default", {"trials": [{"attempt": "x"}]})


@pytest.mark.parametrize(
    ("damage", "expected"),
    [(_damage_state, "ConfigMap simulated-state"), (_damage_result, r"BenchmarkResult simulated-w-000.status.trials")],
)
async def test_invalid_content(kube: FakeKube, damage: Callable[[FakeKube], Any], expected: str) -> None:
    await damage(kube)
    with pytest.raises(SpecError, match=expected):
        await KubeSink(kube, PLAN, "default").load()


async def test_only_get_and_patch_of_its_own_objects(kube: FakeKube) -> None:
    sink = KubeSink(kube, PLAN, "default")
    await sink.load()
    await sink.publish(RunState())
    await sink.record("w-000", ResultStatus())
    assert sorted(kube.requests) == [
        "get BenchmarkResult default/simulated-w-000",
        "get BenchmarkResult default/simulated-w-001",
        "get ConfigMap default/simulated-state",
        "patch ConfigMap default/simulated-state",
        "patch status of BenchmarkResult default/simulated-w-000",
    ]


@pytest.mark.parametrize(
    ("operations", "p99", "expected"),
    [
        ((), None, {"trials": "2/5"}),
        (
            (Operation.READ,),
            12_345_678.0,
            {
                "operation": "read",
                "iops": "12,346 ± 350",
                "bytesPerSecond": "50.0 MiB/s",
                "p99": "12.3 ms",
                "trials": "2/5",
            },
        ),
        (
            (Operation.READ, Operation.WRITE, Operation.SYNC),
            999_900.0,
            {
                "operation": "read / write",
                "iops": "12,346 ± 350 / 12,346 ± 350",
                "bytesPerSecond": "50.0 MiB/s / 50.0 MiB/s",
                "p99": "1.00 ms / 1.00 ms",
                "trials": "2/5",
            },
        ),
        (
            (Operation.SYNC,),
            None,
            {
                "operation": "sync",
                "iops": "12,346 ± 350",
                "bytesPerSecond": "50.0 MiB/s",
                "p99": "-",
                "trials": "2/5",
            },
        ),
    ],
)
def test_results_as_text(operations: tuple[Operation, ...], p99: float | None, expected: dict[str, str]) -> None:
    status = ResultStatus(summary=summary(*operations, p99=p99))
    assert result_display(status, 5).model_dump(mode="json", exclude_none=True) == expected


def finding(reason: str, verdict: Verdict = Verdict.SUSPECT) -> Finding:
    return Finding(reason=reason, verdict=verdict, message="m")


CLOCK, OVERLAP = finding("ClockUnknown"), finding("LowOverlap")
FAILED, UNCOUNTED = finding("ToolFailed", Verdict.INVALID), finding("NoTrialCounts", Verdict.INVALID)
ABORTED = {"outcome": Outcome.ABORTED, "abort": Abort(reason=AbortReason.CLIENT_LOST, message="m")}


@pytest.mark.parametrize(
    ("final", "findings", "last", "expected"),
    [
        (True, (), {}, None),
        (True, (CLOCK,), {}, "ClockUnknown"),
        (True, (CLOCK, OVERLAP), {}, "ClockUnknown +1"),
        (True, (CLOCK, FAILED, OVERLAP), {}, "ToolFailed +2"),
        (True, (UNCOUNTED, FAILED, CLOCK), {}, "ToolFailed +1"),
        (True, (UNCOUNTED,), ABORTED, "ClientLost"),
        (True, (UNCOUNTED,), {}, "NoTrialCounts"),
        (True, (finding("Odd", Verdict.VALID),), {}, None),
        (False, (), {}, None),
        (False, (), {"findings": (CLOCK, FAILED)}, "ToolFailed +1"),
        (False, (), ABORTED, "ClientLost"),
    ],
)
def test_the_main_reason_is_shown_with_the_verdict(
    *, final: bool, findings: tuple[Finding, ...], last: dict[str, Any], expected: str | None
) -> None:
    status = ResultStatus(trials=(trial(), trial(1).model_copy(update=last)), findings=findings, final=final)
    assert result_display(status, 5).reason == expected


def test_a_point_without_attempts_has_no_reason() -> None:
    assert result_display(ResultStatus(), 5).reason is None


async def test_the_searches_that_ended_are_loaded(kube: FakeKube) -> None:
    search = LineSearch(start=1, limit=9, objectives=(Objective(percentile="99", latency="5us"),))
    points = (PLAN.points[0].model_copy(update={"line": search}), PLAN.points[1].model_copy(update={"line": search}))
    sink = KubeSink(kube, PLAN.model_copy(update={"points": points}), "default")
    await sink.load()
    await sink.record("w-000", ResultStatus(line=Line(probes=1, counted=1)))
    await sink.record("w-001", ResultStatus(line=Line(probes=1, counted=1, ending=Ending.NEVER_BROKE)))
    assert (await sink.load()).ended == {"w-001"}


async def test_recorded_matrices_are_loaded(kube: FakeKube) -> None:
    sink = await loaded(kube)
    matrix = Matrix(trials=1, members=(), clients=(0,), peers=(1,), bytes_per_second=(5,))
    found = summary(Operation.WRITE).model_copy(update={"matrix": matrix})
    await sink.record("w-001", ResultStatus(trials=(trial(),), summary=found))
    assert (await sink.load()).matrices == {"w-001": matrix}
