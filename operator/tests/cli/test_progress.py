"""How the progress of a local run is shown."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from plimsoll.api.names import RunPhase
from plimsoll.api.run import load_run
from plimsoll.api.status import STATE_FILE, CurrentTrial, Prefill, RunState, TrialKey
from plimsoll.cli.run import LocalProgress, describe, done_share, remaining_seconds
from plimsoll.cli.watch import LivePicture, RunLines, view_on
from plimsoll.conductor.sink import RESULTS_DIRECTORY, replace_file
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import TRIAL_OVERHEAD_SECONDS, estimate, make_plan
from support.results import GOING_ON, PRECISE, SEARCH, searched

QUICKSTART = Path(__file__).parents[1] / "golden" / "plan-v1-quickstart.yaml"
NOW = 1000.0
TRIAL_SECONDS = 1 + 3 + TRIAL_OVERHEAD_SECONDS
TRIALS = 12


@pytest.fixture
def plan() -> Plan:
    return make_plan(load_run(QUICKSTART.read_text()), seed=1)


def measuring(*, started: float = NOW, attempt: int = 0, done: int = 0) -> RunState:
    key = TrialKey(point="random-read-001", pass_number=1, attempt=attempt)
    current = CurrentTrial(key=key, label="randread 4Ki qd16", clients=(0, 1), starts_at=started, ends_at=started + 4)
    return RunState(phase=RunPhase.MEASURING, current=current, trials_done=done, trials_total=TRIALS)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (RunState(), "gathering"),
        (RunState(message="waiting for client 1"), "waiting for client 1"),
        (RunState(phase=RunPhase.PREPARING), "preparing"),
        (
            RunState(
                phase=RunPhase.PREPARING,
                message="overwriting for 600 s: client 0 and client 1",
                prefill=Prefill(total_bytes=20 * 10**9),
            ),
            "overwriting for 600 s: client 0 and client 1",
        ),
        (RunState(phase=RunPhase.SETTLING, message="settling for 2 s"), "settling for 2 s"),
        (RunState(phase=RunPhase.COMPLETE), "complete"),
        (measuring(), "pass 2/3: random-read-001 (randread 4Ki qd16)"),
        (measuring(attempt=1), "pass 2/3, attempt 2: random-read-001 (randread 4Ki qd16)"),
    ],
)
def test_state_in_one_line(plan: Plan, state: RunState, text: str) -> None:
    assert describe(state, plan) == text


def test_prefill_says_how_much_is_to_be_written(plan: Plan) -> None:
    state = RunState(phase=RunPhase.PREPARING, prefill=Prefill(total_bytes=20 * 10**9))
    assert "18.6 GiB" in describe(state, plan)


def test_remaining_time_is_that_of_the_trials_that_are_left(plan: Plan) -> None:
    assert remaining_seconds(RunState(), plan, NOW) == TRIALS * TRIAL_SECONDS
    assert remaining_seconds(RunState(trials_done=11), plan, NOW) == TRIAL_SECONDS
    assert remaining_seconds(RunState(trials_done=TRIALS), plan, NOW) == 0


def test_running_trial_counts_down(plan: Plan) -> None:
    assert remaining_seconds(measuring(started=NOW - 3, done=4), plan, NOW) == 8 * TRIAL_SECONDS - 3
    assert remaining_seconds(measuring(started=NOW + 1, done=4), plan, NOW) == 8 * TRIAL_SECONDS


def test_preparation_before_each_trial_is_part_of_the_remaining_time(plan: Plan) -> None:
    renewing = plan.model_copy(update={"prepare": plan.prepare.model_copy(update={"per_trial": "NewDataSet"})})
    preparing = estimate(plan).preparation_seconds
    assert preparing > 0
    assert remaining_seconds(RunState(), renewing, NOW) == TRIALS * (TRIAL_SECONDS + preparing)
    begun = measuring(started=NOW - 3, done=4)
    assert remaining_seconds(begun, renewing, NOW) == 8 * TRIAL_SECONDS + 7 * preparing - 3
    assert done_share(RunState(trials_done=6), renewing, NOW) == pytest.approx(0.5)


@pytest.mark.parametrize("late", [100.0, 1e6])
def test_remaining_time_is_never_negative(plan: Plan, late: float) -> None:
    assert remaining_seconds(measuring(done=11), plan, NOW + late) == 0


def test_share_increases_from_0_to_1(plan: Plan) -> None:
    shares = [done_share(RunState(trials_done=number), plan, NOW) for number in range(TRIALS + 1)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert shares[6] == pytest.approx(0.5)


def test_without_a_terminal_every_step_is_one_line(plan: Plan, tmp_path: Path) -> None:
    file = io.StringIO()
    with RunLines(Console(file=file, width=100)) as view:
        progress = LocalProgress(view, plan, tmp_path)
        progress.update()
        between = RunState(phase=RunPhase.MEASURING, trials_total=TRIALS)
        for state in (RunState(message="waiting"), RunState(message="waiting"), measuring(), between, measuring()):
            replace_file(tmp_path / STATE_FILE, state.model_dump_json(), sync=False)
            progress.update()
    assert [line.partition("  ")[2] for line in file.getvalue().splitlines()] == [
        "Gathering  waiting",
        "Measuring  0/12  pass 2/3: random-read-001 (randread 4Ki qd16)",
    ]


def test_terminal_shows_the_picture_of_a_watched_run(plan: Plan, tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=30, color_system=None)
    replace_file(tmp_path / STATE_FILE, measuring(done=4).model_dump_json(), sync=False)
    with console.capture() as capture, view_on(console, "quickstart", "results", waiting="starting") as view:
        LocalProgress(view, plan, tmp_path).update()
        assert isinstance(view, LivePicture)
        view._live.refresh()
    text = capture.get()
    assert "quickstart  Measuring" in text
    assert "4/12 trials  0:00:00 elapsed, about 0:" in text
    assert "pass 2/3: random-read-001 (randread 4Ki qd16), 2 clients" in text
    assert all(f"{point.name} " in text for point in plan.points)


# Searches for the line


def with_a_search(plan: Plan) -> tuple[Plan, str]:
    """Return the plan with a search at its first point in order, and that point."""
    index = plan.order[0][0]
    searched = plan.points[index].model_copy(update={"line": SEARCH})
    points = tuple(searched if number == index else point for number, point in enumerate(plan.points))
    return plan.model_copy(update={"points": points}), searched.name


def test_a_search_takes_as_long_as_all_the_probes_that_it_may_make(plan: Plan) -> None:
    searching, _ = with_a_search(plan)
    others = TRIALS - plan.repetitions
    assert remaining_seconds(RunState(), searching, NOW) == (40 + others) * TRIAL_SECONDS
    assert remaining_seconds(RunState(probes_done=12), searching, NOW) == (28 + others) * TRIAL_SECONDS
    assert remaining_seconds(RunState(trials_done=1), searching, NOW) == others * TRIAL_SECONDS
    assert (
        0
        < done_share(RunState(probes_done=12), searching, NOW)
        < done_share(RunState(trials_done=1), searching, NOW)
        < 1
    )


def test_a_probe_in_one_line(plan: Plan) -> None:
    searching, name = with_a_search(plan)
    key = TrialKey(point=name, pass_number=11, attempt=1)
    current = CurrentTrial(key=key, label="randread 4Ki", clients=(0, 1), starts_at=NOW, ends_at=NOW + 4)
    state = RunState(phase=RunPhase.MEASURING, current=current)
    assert describe(state, searching) == f"probe 12 of at most 40, attempt 2: {name} (randread 4Ki)"


def test_the_line_is_shown_after_every_probe(plan: Plan, tmp_path: Path) -> None:
    searching, name = with_a_search(plan)
    console = Console(file=io.StringIO(), width=160)
    view = RunLines(console)
    progress = LocalProgress(view, searching, tmp_path)
    (tmp_path / RESULTS_DIRECTORY).mkdir()
    with console.capture() as capture, view:
        for number, line in enumerate((GOING_ON, PRECISE)):
            key = TrialKey(point=name, pass_number=3 + number, attempt=0)
            current = CurrentTrial(key=key, label="randread 4Ki", clients=(0, 1), starts_at=NOW, ends_at=NOW + 4)
            state = RunState(phase=RunPhase.MEASURING, current=current, trials_total=10)
            replace_file(tmp_path / STATE_FILE, state.model_dump_json(), sync=False)
            recorded = searched(line, point=name)
            replace_file(tmp_path / RESULTS_DIRECTORY / f"{name}.json", recorded.model_dump_json(), sync=False)
            progress.update()
    points = [line[22:] for line in capture.get().splitlines() if line[22:].startswith("point")]
    label = searching.point(name).label
    assert points == [
        f"point {name} ({label}): line between 8,000 and 16,000 at p99 <= 5 ms, 3 of at most 40 probes, Valid",
        f"point {name} ({label}): line 12,400 ± 600 at p99 <= 5 ms, 3 of 4 probes, Valid",
    ]
