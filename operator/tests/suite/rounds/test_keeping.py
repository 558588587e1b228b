"""Which rounds are kept, and that the runs of all others are deleted."""

import pytest

from plimsoll.api.suite_status import MAX_DROPPED, RoundVerdict, minute_of_round, round_name
from plimsoll.suite.rounds.observed import CreateRun, DeleteRun
from support.pretend_suites import START_MINUTE, PretendSuites

REQUEST = "plimsoll.dev/request-round"
ACCEPT = "plimsoll.dev/accept-round"
REGRESSED = RoundVerdict.REGRESSED


def after_rounds(count: int, *, verdicts: tuple[RoundVerdict, ...] = (), keep: int = 2) -> PretendSuites:
    """Return a suite after rounds, one each minute."""
    world = PretendSuites(spec={"repeat": 1, "keep": keep}, verdicts=list(verdicts))
    for number in range(count):
        world.annotations[REQUEST] = str(number)
        world.measure_round()
        world.pass_time(minutes=1)
    return world


def numbers(world: PretendSuites, field: str = "") -> list[int]:
    """Return the rounds, numbered from 0, newest first; only those with a field."""
    return [one["minute"] - START_MINUTE for one in world.rounds if not field or one[field]]


def test_newest_rounds_are_kept_and_the_first_five_accepted_ones() -> None:
    world = after_rounds(9)
    assert numbers(world) == [8, 7, 4, 3, 2, 1, 0]
    assert numbers(world, "pinned") == [4, 3, 2, 1, 0]
    assert {run.minute - START_MINUTE for run in world.runs.values()} == {8, 7, 4, 3, 2, 1, 0}


def test_regressed_rounds_are_not_pinned() -> None:
    world = after_rounds(5, verdicts=(RoundVerdict.NO_REGRESSION, *[REGRESSED] * 4))
    assert numbers(world) == [4, 3, 0]
    assert [minute - START_MINUTE for minute in world.status["dropped"]] == [2, 1]


def test_first_accepted_round_of_a_change_replaces_the_baseline() -> None:
    world = after_rounds(3)
    world.change(repeat=2)
    world.verdicts = [REGRESSED]
    world.measure_round()
    assert numbers(world, "pinned") == [2, 1, 0]
    world.pass_time(minutes=1)
    world.annotations[REQUEST] = "again"
    world.measure_round()
    assert numbers(world, "accepted") == numbers(world, "pinned") == [4]
    assert numbers(world, "former") == [2, 1, 0]
    assert numbers(world) == [4, 3, 2, 1, 0]


def test_rounds_are_dropped_between_rounds_only() -> None:
    world = after_rounds(4, verdicts=(REGRESSED,) * 4, keep=4)
    world.annotations[REQUEST] = "again"
    world.settle()
    world.change(keep=1)
    world.settle()
    assert numbers(world) == [3, 2, 1, 0]
    world.measure_round()
    assert numbers(world) == [4]


def test_each_run_of_dropped_rounds_is_deleted_once_even_if_another_one_stays() -> None:
    world = after_rounds(3, verdicts=(REGRESSED,) * 3, keep=3)
    world.stuck = True
    world.change(keep=1)
    decision = world.look()
    assert [type(one) for one in decision.actions[1:]] == [DeleteRun]
    deletions = [one for _ in range(6) for one in world.look().actions if isinstance(one, DeleteRun)]
    assert len(deletions) == 3
    assert sorted(run.minute - START_MINUTE for run in world.runs.values() if run.is_deleting) == [0, 0, 1, 1]
    world.vanish()
    assert {run.minute - START_MINUTE for run in world.runs.values()} == {2}


def test_dropped_round_whose_run_stays_is_named_when_there_are_too_many() -> None:
    world = after_rounds(1, verdicts=(REGRESSED,), keep=1)
    world.stuck = True
    again(world, REGRESSED)
    world.look()
    newer = [START_MINUTE + 2 + number for number in range(MAX_DROPPED)]
    world.status["dropped"] = [*reversed(newer), *world.status["dropped"]][:MAX_DROPPED]
    world.status["dropped"][-1] = START_MINUTE
    world.pass_time(days=1)
    again(world, REGRESSED)
    assert len(world.status["dropped"]) == MAX_DROPPED
    assert START_MINUTE in world.status["dropped"]
    assert world.status["dropped"] == sorted(world.status["dropped"], reverse=True)
    assert not world.condition("Stalled")


def test_deletions_come_before_the_next_run_because_of_quotas_and_never_block_it() -> None:
    world = after_rounds(2, verdicts=(REGRESSED,) * 2)
    world.stuck = True
    world.change(keep=1)
    world.annotations[REQUEST] = "again"
    assert [type(world.look().actions[-1]) for _ in range(3)] == [DeleteRun, DeleteRun, CreateRun]


def test_accepted_regression_starts_the_baseline_anew() -> None:
    world = after_rounds(4, verdicts=(*[RoundVerdict.NO_REGRESSION] * 2, REGRESSED), keep=4)
    assert numbers(world, "accepted") == [3, 1, 0]
    world.annotations[ACCEPT] = round_name(START_MINUTE + 2)
    world.settle()
    assert numbers(world, "accepted") == numbers(world, "pinned") == [3, 2]
    assert world.status["acceptedRound"] == round_name(START_MINUTE + 2)
    assert world.reasons()[-1] == "RoundAccepted"


def test_annotation_that_names_the_active_round_is_followed_when_it_ends() -> None:
    world = after_rounds(1)
    world.annotations[REQUEST] = "again"
    world.verdicts = [REGRESSED]
    world.settle()
    world.annotations[ACCEPT] = round_name(START_MINUTE + 1)
    world.settle()
    assert "acceptedRound" not in world.status
    world.measure_round()
    assert numbers(world, "accepted") == [1]


def test_unknown_round_is_reported_once_with_the_rounds_that_exist() -> None:
    world = after_rounds(2)
    for text in ("0", "0", "latest"):
        world.annotations[ACCEPT] = text
        world.settle()
    events = [one.message for one in world.events if one.reason == "RoundUnknown"]
    rounds = f"these can be accepted: {round_name(START_MINUTE + 1)}, {round_name(START_MINUTE)}"
    assert events == [
        f"annotation {ACCEPT}: '{text}' is not the start of a round that was evaluated with all of its runs; {rounds}"
        for text in ("0", "latest")
    ]
    assert numbers(world, "accepted") == [1, 0]


@pytest.mark.parametrize(
    "text", ["2026-11-25T12:00Z", "2026-11-25T12:00:59Z", "2026-11-25T13:00+01:00", "20261125T1200Z"]
)
def test_a_round_is_named_by_its_start_in_any_zone(text: str) -> None:
    world = after_rounds(2)
    world.annotations[ACCEPT] = text
    world.settle()
    assert world.events[-1].message.startswith("round 2026-11-25T12:00Z is accepted: ")


@pytest.mark.parametrize("text", ["29926800", "2026-11-25T12:00", "12:00Z", "yesterday", ""])
def test_what_is_no_time_with_a_zone_names_no_round(text: str) -> None:
    assert minute_of_round(text) is None


def test_round_without_numbers_cannot_be_accepted() -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.measure_round(succeeded=False)
    world.annotations[ACCEPT] = round_name(START_MINUTE)
    world.settle()
    assert not numbers(world, "accepted")
    assert world.events[-1].message.endswith("no round can be accepted yet")


@pytest.mark.parametrize("verdict", [REGRESSED, RoundVerdict.INCONCLUSIVE, RoundVerdict.NO_REGRESSION])
def test_round_that_lacks_a_run_cannot_be_accepted(verdict: RoundVerdict) -> None:
    world = PretendSuites(spec={"repeat": 2}, verdicts=[verdict])
    world.settle()
    world.finish(succeeded=False)
    world.measure_round()
    world.annotations[ACCEPT] = round_name(START_MINUTE)
    world.settle()
    assert [one["complete"] for one in world.rounds] == [False]
    assert not numbers(world, "accepted")
    assert world.reasons()[-1] == "RoundUnknown"


def again(world: PretendSuites, *verdicts: RoundVerdict) -> None:
    """Measure further rounds, one each minute."""
    for number, verdict in enumerate(verdicts):
        world.annotations[REQUEST] = f"{world.now} {number}"
        world.verdicts = [verdict]
        world.measure_round()
        world.pass_time(minutes=1)


GOOD, UNCLEAR = RoundVerdict.NO_REGRESSION, RoundVerdict.INCONCLUSIVE


@pytest.fixture
def mistaken() -> PretendSuites:
    """Return a suite of which a user accepted a regression, round 7, after a baseline of rounds 0 to 6."""
    world = after_rounds(8, verdicts=(*[GOOD] * 7, REGRESSED), keep=1)
    world.annotations[ACCEPT] = round_name(START_MINUTE + 7)
    world.settle()
    assert numbers(world, "accepted") == [7]
    return world


def test_accepted_regression_can_be_taken_back_until_three_rounds_are_accepted(mistaken: PretendSuites) -> None:
    again(mistaken, UNCLEAR)
    assert numbers(mistaken, "former") == [4, 3, 2, 1, 0]
    mistaken.annotations[ACCEPT] = round_name(START_MINUTE)
    mistaken.settle()
    assert numbers(mistaken, "accepted") == numbers(mistaken, "pinned") == [4, 3, 2, 1, 0]
    assert mistaken.condition("Regressed")["status"] == "True"
    again(mistaken, GOOD)
    judged = mistaken.judged[-1]
    assert [one.minute - START_MINUTE for one in judged.baseline] == [0, 1, 2, 3, 4]
    assert mistaken.condition("Regressed")["status"] == "False"


def test_former_baseline_is_dropped_when_the_new_one_is_established(mistaken: PretendSuites) -> None:
    again(mistaken, UNCLEAR, GOOD)
    assert numbers(mistaken, "pinned") == [9, 8, 7]
    assert numbers(mistaken) == [9, 8, 7]
    mistaken.annotations[ACCEPT] = round_name(START_MINUTE)
    mistaken.settle()
    assert mistaken.reasons()[-1] == "RoundUnknown"


def test_second_mistake_does_not_forget_the_established_baseline(mistaken: PretendSuites) -> None:
    again(mistaken, REGRESSED)
    mistaken.annotations[ACCEPT] = round_name(START_MINUTE + 8)
    mistaken.settle()
    assert numbers(mistaken, "accepted") == [8]
    assert numbers(mistaken, "former") == [4, 3, 2, 1, 0]


def test_accepting_an_older_round_with_many_successors_can_be_taken_back() -> None:
    world = after_rounds(8, keep=1)
    world.annotations[ACCEPT] = round_name(START_MINUTE + 4)
    world.settle()
    assert numbers(world, "accepted") == [7, 4]
    assert numbers(world, "former") == [3, 2, 1, 0]
    world.annotations[ACCEPT] = round_name(START_MINUTE)
    world.settle()
    assert numbers(world, "accepted") == [3, 2, 1, 0]


def test_round_of_what_was_measured_before_a_change_can_be_accepted() -> None:
    world = after_rounds(3)
    world.change(repeat=2)
    world.measure_round()
    assert numbers(world, "accepted") == [3]
    world.annotations[ACCEPT] = round_name(START_MINUTE)
    world.settle()
    assert numbers(world, "accepted") == [2, 1, 0]
    world.change(repeat=1)
    world.pass_time(minutes=1)
    world.measure_round()
    assert [one.minute - START_MINUTE for one in world.judged[-1].baseline] == [0, 1, 2]


def test_failed_rounds_displace_no_usable_ones_and_are_bounded() -> None:
    world = after_rounds(3, verdicts=(REGRESSED,) * 3, keep=2)
    for number in range(7):
        world.pass_time(minutes=1)
        world.annotations[REQUEST] = f"failed {number}"
        world.measure_round(succeeded=False)
    assert numbers(world) == [10, 9, 8, 7, 6, 2, 1]
    assert {run.minute - START_MINUTE for run in world.runs.values()} == {10, 9, 8, 7, 6, 2, 1}
