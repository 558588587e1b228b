"""Whatever users, runs, the API server and the operator do: one run at a time, none is measured twice, rounds end."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.suite_status import round_label
from plimsoll.kube.port import ApiError, ForbiddenError, TransientError
from support.fake_kube import FakeKube, failing
from support.played_suites import RUN, Mortal, PlayedSuite
from support.pretend_suites import KilledError
from support.specs import suite_document

_RATES = {"small": 1000.0, "large": 2000.0}
_STEPS = (
    "look",
    "finish",
    "fail",
    "request",
    "change",
    "suspend",
    "resume",
    "delete run",
    "drop labels",
    "wait",
    "restart",
    "kill before",
    "kill after",
    "lose an answer",
    "refuse a run",
)


async def perform(step: str, number: int, played: PlayedSuite, kube: FakeKube) -> None:
    match step:
        case "finish" | "fail":
            await played.finish(_RATES if step == "finish" else None)
        case "request":
            await played.annotate("request-round", str(number))
        case "change":
            await played.change(repeat=1 + number % 2)
        case "suspend" | "resume":
            await played.change(suspend=step == "suspend")
        case "wait":
            played.pass_time(minutes=10)
        case "delete run" | "drop labels":
            await spoil(step, played, kube)
        case _:
            break_down(step, number, played, kube)


async def spoil(step: str, played: PlayedSuite, kube: FakeKube) -> None:
    """Have a user delete the active run, or remove the label by which its suite lists it."""
    run = await played.unfinished()
    if run is None:
        return
    name = run["metadata"]["name"]
    if step == "delete run":
        await kube.delete(RUN, name, "default")
    else:
        await kube.patch(RUN, name, "default", {"metadata": {"labels": {"plimsoll.dev/suite": None}}})


def break_down(step: str, number: int, played: PlayedSuite, kube: FakeKube) -> None:
    match step:
        case "restart":
            played.restart()
        case "kill before" | "kill after":
            played.operator.kill_in, played.operator.kill_after = 1 + number % 3, step == "kill after"
        case "lose an answer":
            kube.interfere = failing(lambda asked: TransientError(asked, "status 503"), times=1)
        case "refuse a run":
            kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=1, request="create BenchmarkRun")


async def look(played: PlayedSuite, kube: FakeKube) -> None:
    """Let the operator look, which may fail or die."""
    try:
        with suppress(ApiError):
            await played.reconciler.look(played.document)
    except KilledError:
        played.restart()
    unfinished = [run for run in kube.objects(RUN.kind) if not run.get("status", {}).get("conditions")]
    assert len(unfinished) <= 1, "two runs load the storage"
    # One that a user deletes before the status has its UID may be created again: nothing shows that it existed.
    again = {name for name in played.operator.made if played.operator.made.count(name) > 1}
    assert not again & played.finished, "a run is measured twice"


async def play(steps: Sequence[str]) -> None:
    kube = FakeKube()
    played = PlayedSuite(kube=kube, operator=Mortal(kube), namespace="default")
    await played.create(suite_document(repeat=2))
    for number, step in enumerate(steps):
        await perform(step, number, played, kube)
        for _ in range(1 + number % 4):
            await look(played, kube)
    kube.interfere = lambda _: None
    played.operator.kill_in = None
    await played.change(suspend=False)
    played.pass_time(minutes=10)
    ended = await played.measure_round(**_RATES)
    status = await played.status()
    assert "round" not in status
    assert ended["verdict"] in {"NoRegression", "Inconclusive", "Failed", "Superseded"}
    failed = ended["verdict"] == "Failed"
    assert (await played.condition("Ready"))["reason"] == ("RoundFailed" if failed else "Idle")
    assert bool(await played.condition("Stalled")) == failed
    kept = {round_label(one["minute"]) for one in status["rounds"]}
    labels = [run["metadata"]["labels"] for run in kube.objects(RUN.kind)]
    assert {one["plimsoll.dev/round"] for one in labels if "plimsoll.dev/suite" in one} <= kept


@given(st.lists(st.sampled_from(_STEPS), max_size=30))
def test_one_run_at_a_time_none_is_measured_twice_and_every_round_ends(steps: Sequence[str]) -> None:
    asyncio.run(play(steps))
