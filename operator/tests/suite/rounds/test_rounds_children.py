"""The runs of the active round, one at a time, whatever happens to them."""

import pytest

from plimsoll.suite.rounds.observed import CreateRun, DeleteRun, PatchStatus
from support.pretend_suites import HASH, NAME, START_MINUTE, UID, KilledError, PretendRun, PretendSuites
from support.specs import large_run


@pytest.fixture
def world() -> PretendSuites:
    """Return a suite whose first run is being measured."""
    world = PretendSuites(spec={"repeat": 2})
    world.settle()
    return world


def test_round_is_recorded_before_its_first_run() -> None:
    world = PretendSuites()
    world.look()
    patch, _, create = world.look().actions
    assert isinstance(patch, PatchStatus)
    assert patch.status["round"]["minute"] == START_MINUTE
    assert isinstance(create, CreateRun)


def test_run_is_owned_by_the_suite_and_has_the_merged_specification(world: PretendSuites) -> None:
    world.finish()
    create = next(one for one in world.look().actions if isinstance(one, CreateRun))
    metadata = create.run["metadata"]
    variant = metadata["labels"]["plimsoll.dev/variant"]
    assert metadata["name"] == f"{NAME}-{variant}-{HASH}-{START_MINUTE}-0"
    assert metadata["namespace"] == "bench"
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("BenchmarkSuite", UID, True)
    sizes = create.run["spec"]["workloads"][0]["fio"]["blockSize"]
    assert sizes == {"small": ["4Ki"], "large": ["64Ki"]}[variant]


def test_runs_are_created_one_after_the_other(world: PretendSuites) -> None:
    for number in range(1, 5):
        assert len(world.created) == number
        assert not world.look().actions
        world.finish()
        world.settle()
    assert len(set(world.created)) == 4
    assert world.rounds[0]["verdict"] == "NoRegression"


def test_failed_run_does_not_stop_the_round_but_the_round_proves_nothing(world: PretendSuites) -> None:
    world.finish(succeeded=False)
    world.measure_round()
    assert len(world.created) == 4
    assert (world.rounds[0]["verdict"], world.rounds[0]["accepted"]) == ("Inconclusive", False)


@pytest.mark.parametrize("is_finished", [True, False])
def test_run_that_a_user_deletes_is_not_created_again(world: PretendSuites, *, is_finished: bool) -> None:
    if is_finished:
        world.finish()
    world.runs.clear()
    world.measure_round()
    assert len(world.created) == len(set(world.created)) == 4
    assert world.rounds[0]["verdict"] == "Inconclusive"


@pytest.mark.parametrize("is_performed", [True, False])
@pytest.mark.parametrize("request_number", range(1, 12))
def test_killed_operator_continues(request_number: int, *, is_performed: bool) -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.kill_in, world.kill_after = request_number, is_performed
    for _ in range(2):
        try:
            world.measure_round()
        except KilledError:
            world.restart()
    assert len(world.created) == len(set(world.created)) == 2
    assert [one["verdict"] for one in world.rounds] == ["NoRegression"]


def test_suspended_suite_creates_no_run_and_its_active_run_continues(world: PretendSuites) -> None:
    world.change(suspend=True)
    world.settle()
    world.finish()
    world.settle()
    assert len(world.created) == 1
    assert world.status["round"]["children"]["done"] == 1
    assert world.condition("Ready")["reason"] == "Suspended"
    world.change(suspend=False)
    world.measure_round()
    assert world.rounds[0]["verdict"] == "NoRegression"


def test_change_during_a_round_supersedes_it_and_deletes_its_unfinished_run(world: PretendSuites) -> None:
    world.finish()
    world.settle()
    world.stuck = True
    world.change(repeat=1)
    deletion = world.look().actions[-1]
    assert isinstance(deletion, DeleteRun)
    assert deletion.name == world.created[-1]
    world.settle()
    assert world.rounds[0]["verdict"] == "Superseded"
    assert "round" not in world.status
    assert world.condition("Reconciling")["reason"] == "WaitingForRun"
    world.vanish()
    world.stuck = False
    world.measure_round()
    assert [one["verdict"] for one in world.rounds] == ["NoRegression", "Superseded"]
    assert world.rounds[0]["minute"] == START_MINUTE + 1


@pytest.mark.parametrize("looks", range(4))
def test_change_and_back_during_a_round_is_measured(world: PretendSuites, looks: int) -> None:
    world.finish()
    world.settle()
    world.stuck = True
    world.change(repeat=1)
    world.look()
    for _ in range(looks):
        world.look()
    world.change(repeat=2)
    world.settle()
    world.vanish()
    world.stuck = False
    world.measure_round()
    assert [one["verdict"] for one in world.rounds] == ["NoRegression", "Superseded"]
    assert world.status["digest"] == world.observe().suite.specification.digest


def test_change_of_a_suspended_suite_supersedes_its_round_when_it_is_resumed(world: PretendSuites) -> None:
    world.change(suspend=True, repeat=1)
    world.settle()
    assert len(world.runs) == 1
    world.change(suspend=False)
    world.measure_round()
    assert [one["verdict"] for one in world.rounds] == ["NoRegression", "Superseded"]


def test_name_that_another_run_has_stalls_the_suite_until_it_is_free(world: PretendSuites) -> None:
    first = world.created[0]
    other = first.replace("small", "large") if "small" in first else first.replace("large", "small")
    world.runs[other] = PretendRun(name=other, uid="x", owner="someone")
    world.finish()
    assert world.settle().again_after == 60
    stalled = world.condition("Stalled")
    assert stalled["reason"] == "NameTaken"
    assert stalled["message"] == (
        f"BenchmarkRun {other} exists and does not belong to this suite; delete that run, or rename the suite"
    )
    assert world.condition("Ready")["status"] == "False"
    del world.runs[other]
    world.pass_time(seconds=60)
    world.measure_round()
    assert not world.condition("Stalled")
    assert world.rounds[0]["verdict"] == "NoRegression"


@pytest.mark.parametrize("is_finished", [True, False])
def test_run_that_measures_something_else_is_not_that_of_the_turn(world: PretendSuites, *, is_finished: bool) -> None:
    first = world.created[0]
    variant = "large" if "small" in first else "small"
    other = f"{NAME}-{variant}-{HASH}-{START_MINUTE}-0"
    forged = PretendRun(name=other, uid="x", variant=variant, minute=START_MINUTE, measures="else")
    forged.is_finished = forged.has_numbers = is_finished
    world.finish()
    world.runs[other] = forged
    assert world.settle().again_after == 60
    assert world.condition("Stalled")["reason"] == "NameTaken"
    assert other in world.condition("Stalled")["message"]
    assert world.status["round"]["children"]["done"] == 1
    del world.runs[other]
    world.pass_time(seconds=60)
    world.measure_round()
    assert world.rounds[0]["verdict"] == "NoRegression"
    assert other in world.created


def test_run_that_loses_its_owner_while_it_is_measured_is_not_gone(world: PretendSuites) -> None:
    first = world.runs[world.created[0]]
    first.owner = ""
    world.settle()
    assert len(world.created) == 1
    first.end(succeeded=True)
    world.settle()
    assert len(world.created) == 2
    assert world.status["round"]["children"]["done"] == 1


def test_run_that_replaces_the_one_that_is_measured_stalls_the_suite_until_it_is_deleted(world: PretendSuites) -> None:
    first = world.created[0]
    world.runs[first] = PretendRun(name=first, uid="x", owner="someone")
    assert world.settle().again_after == 60
    assert world.condition("Stalled")["reason"] == "NameTaken"
    before = world.status
    world.restart()
    world.settle()
    assert world.status == before
    assert world.reasons().count("NameTaken") == 1
    del world.runs[first]
    world.pass_time(seconds=60)
    world.measure_round()
    assert not world.condition("Stalled")
    assert (world.rounds[0]["verdict"], len(set(world.created))) == ("Inconclusive", 4)


def test_change_frees_a_suite_whose_next_name_is_taken() -> None:
    world = PretendSuites(spec={"repeat": 1})
    for variant in ("small", "large"):
        name = f"{NAME}-{variant}-{HASH}-{START_MINUTE}-0"
        world.runs[name] = PretendRun(name=name, uid=name, owner="someone")
    world.settle()
    assert world.condition("Stalled")["reason"] == "NameTaken"
    world.change(repeat=2)
    world.measure_round()
    assert [one["verdict"] for one in world.rounds] == ["NoRegression", "Superseded"]


def test_refused_run_stalls_the_suite_and_is_tried_again(world: PretendSuites) -> None:
    world.refuses = {"small": "exceeded quota: runs", "large": "exceeded quota: runs"}
    world.finish()
    world.settle()
    assert world.condition("Stalled")["reason"] == "RunRefused"
    assert "exceeded quota: runs; raise the quota" in world.condition("Stalled")["message"]
    world.refuses = {}
    world.pass_time(seconds=59)
    assert not world.look().actions
    world.pass_time(seconds=1)
    world.measure_round()
    assert world.rounds[0]["verdict"] == "NoRegression"


def test_refused_run_is_still_reported_after_a_restart(world: PretendSuites) -> None:
    world.refuses = {"small": "exceeded quota: runs", "large": "exceeded quota: runs"}
    world.finish()
    world.settle()
    before = world.status
    world.restart()
    assert [type(one) for one in world.look().actions] == [PatchStatus, CreateRun]
    world.settle()
    assert world.status == before
    assert world.reasons().count("RunRefused") == 1


def test_no_run_is_created_beside_another_one_after_the_status_was_set_back(world: PretendSuites) -> None:
    before, first = world.status, world.created[0]
    world.finish()
    world.settle()
    world.status = {**before, "round": {**before["round"]}}
    del world.status["round"]["current"], world.status["round"]["currentUid"]
    del world.runs[first]
    world.settle()
    assert len(world.created) == 2
    world.measure_round()
    assert world.rounds[0]["verdict"] == "NoRegression"


def test_invalid_suite_creates_nothing_and_continues_its_round_once_it_is_valid(world: PretendSuites) -> None:
    world.change(schedule={"cron": "0 3 * * 8"})
    world.finish()
    world.settle()
    assert len(world.created) == 1
    stalled = world.condition("Stalled")
    assert stalled["reason"] == "InvalidSpec"
    assert stalled["message"].startswith("spec.schedule.cron: ")
    world.change(schedule=None)
    world.measure_round()
    assert [one["verdict"] for one in world.rounds] == ["NoRegression"]


def test_round_that_the_operator_could_not_evaluate_is_refused_with_the_numbers_and_the_remedy() -> None:
    variants = [{"name": "small"}, {"name": "large"}]
    world = PretendSuites(spec={"run": large_run(50), "repeat": 10, "variants": variants})
    world.settle()
    assert world.created
    world.change(run=large_run(51))
    world.settle()
    stalled = world.condition("Stalled")
    assert stalled["reason"] == "InvalidSpec"
    assert stalled["message"] == (
        "spec: a round would have 10,200 trials: 1,020 in 2 variants (points times repetitions), times repeat 10; the "
        "operator evaluates at most 10,000: lower repeat or repetitions, measure fewer points, or divide the suite"
    )
    assert len(world.created) == 1


def test_deleted_suite_is_left_to_the_garbage_collector(world: PretendSuites) -> None:
    world.deleted = True
    world.finish()
    decision = world.look()
    assert not decision.actions
    assert decision.again_after is None
