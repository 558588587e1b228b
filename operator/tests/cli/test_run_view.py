"""How a run is shown on a terminal and elsewhere."""

import io
import re
from typing import Any

import pytest
from click import ClickException
from rich.console import Console

from plimsoll.api.names import RunPhase
from plimsoll.api.status import Prefill, RunState
from plimsoll.cli.watch import LivePicture, Picture, RunLines, view_on
from plimsoll.cli.watched import WatchedPoint, WatchedRun, watched_run, watched_state
from support.command_line import UID, Document, condition, config_map, ended, live, measuring, run


def seen(document: Document, state: RunState | None = None, *points: WatchedPoint) -> WatchedRun:
    read = watched_state(config_map(state), UID) if state is not None else None
    return watched_run(document, read, points)


def point(number: int = 0, **changes: str) -> WatchedPoint:
    known = {
        "name": f"w-{number:03d}",
        "label": "randread 4Ki qd16",
        "clients": "2",
        "operation": "read",
        "iops": "12,345 ± 678",
        "p99": "1.23 ms",
        "trials": "1/2",
        "verdict": "Suspect",
        "reason": "LowOverlap +1",
    }
    return WatchedPoint(**(known | changes))


def unmeasured(number: int) -> WatchedPoint:
    return point(number, operation="", iops="", p99="", trials="", verdict="", reason="")


def picture(
    found: WatchedRun, *, columns: int = 100, lines: int = 30, now: float = 1020.0, trouble: str = ""
) -> list[str]:
    console = Console(file=io.StringIO(), width=columns, height=lines, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(Picture("bench/nightly", found, now, trouble=trouble), end="")
    return [line.rstrip() for line in capture.get().splitlines()]


def time_of(seconds: float) -> str:
    return f"1970-01-01T00:{seconds // 60:02.0f}:{seconds % 60:02.0f}Z"


# Picture


def test_picture_shows_the_progress() -> None:
    found = seen(run(estimatedCompletionTime=time_of(1200)), measuring(live=live()), point(), unmeasured(1))
    lines = picture(found)
    assert lines[0] == "bench/nightly  Measuring"
    assert re.fullmatch(r"[━╸╺ ]{32}  1/4 trials  about 0:03:00 left", lines[1])
    assert lines[2] == "pass 1: w-001 (randread 4Ki qd16), 2 clients, 20 of 60 s"
    assert lines[3] == "now: read 12,346 IOPS, 48.2 MiB/s"
    assert lines[5].split() == ["Point", "Clients", "Op", "IOPS", "±", "95", "%", "p99", "Trials", "Verdict"]
    assert lines[6].split() == ["w-000", "2", "read", "12,345", "±", "678", "1.23", "ms", "1/2", "Suspect"]
    assert lines[7:9] == ["randread 4Ki qd16", "LowOverlap +1"]
    assert lines[9].split() == ["w-001", "2", "-", "-", "-", "-", "measuring"]


def test_wide_picture_has_a_line_for_every_point() -> None:
    lines = picture(seen(run(), None, point(), unmeasured(1)), columns=160)
    assert lines[-2].split()[:6] == ["w-000", "randread", "4Ki", "qd16", "2", "read"]
    assert lines[-2].endswith("Suspect  LowOverlap +1")


def test_elapsed_time_and_passes_are_shown() -> None:
    document = run(startTime=time_of(900), estimatedCompletionTime=time_of(1200)) | {"spec": {"repetitions": 2}}
    lines = picture(seen(document, measuring()))
    assert lines[1].endswith("1/4 trials  0:02:00 elapsed, about 0:03:00 left")
    assert lines[2].startswith("pass 1/2: w-001")


def test_delay_is_shown() -> None:
    found = seen(run(estimatedCompletionTime=time_of(1000)), measuring())
    assert picture(found, now=1065.0)[1].endswith("late by 0:01:05")


def test_repeated_attempt_is_shown() -> None:
    assert "pass 1, attempt 2: w-001" in picture(seen(run(), measuring(attempt=1)))[2]


def test_silent_clients_are_counted() -> None:
    assert picture(seen(run(), measuring(live=live(clients=1))))[3].endswith("MiB/s (1 of 2 clients)")


def test_without_a_state_the_status_is_shown() -> None:
    lines = picture(seen(run(message="trial 2 of 4: w-001 (randread)")))
    assert lines[1].endswith("1/4 trials")
    assert lines[2] == "trial 2 of 4: w-001 (randread)"


def test_prefill_is_shown() -> None:
    state = RunState(phase=RunPhase.PREPARING, prefill=Prefill(done_bytes=2 * 10**9, total_bytes=8 * 10**9))
    assert "prefilling: 1.86 GiB of 7.45 GiB" in picture(seen(run(), state))


def test_problems_are_shown_once() -> None:
    conditions = (
        condition("Reconciling", "True", "the API server does not let the operator list pods"),
        condition("Stalled", "False", "not so"),
        condition("StorageReady", "True", "3 claims are bound"),
        condition("ClientsReady", "False", "client 1 is missing"),
        condition("Succeeded", "Unknown", "trial 2"),
    )
    lines = picture(seen(run(*conditions, message="trial 2"), None))
    assert lines[3:5] == ["the API server does not let the operator list pods", "client 1 is missing"]
    assert "trial 2" in lines[2]
    assert not {"not so", "3 claims are bound"} & set(lines)


def test_unready_component_is_no_problem_before_measuring() -> None:
    clients = condition("ClientsReady", "False", "clients are starting")
    found = seen(run(clients, status="Provisioning", message="claim nightly-client-0 is Pending"))
    assert found.problems == []


def test_invalid_points_are_counted() -> None:
    assert "1 point Invalid" in picture(seen(run(points={"total": 2, "completed": 1, "invalid": 1})))


def test_outdated_picture_is_marked() -> None:
    assert "Not up to date: no route to host" in picture(seen(run()), trouble="no route to host")


def test_unobserved_run_is_marked() -> None:
    document = run()
    del document["status"]
    assert picture(seen(document)) == ["bench/nightly  not seen by the operator yet", "", ""]


def test_deletion_is_shown() -> None:
    document = run()
    document["metadata"]["deletionTimestamp"] = time_of(0)
    assert picture(seen(document))[0] == "bench/nightly  being deleted"


@pytest.mark.parametrize("lines", [8, 12, 24, 60])
@pytest.mark.parametrize("columns", [60, 80, 120, 160])
def test_picture_fits_and_shows_the_point_under_way(columns: int, lines: int) -> None:
    points = [unmeasured(number) if number != 29 else point(29) for number in range(40)]
    state = measuring()
    current = state.model_copy(update={"current": with_point(state, "w-030")})
    shown = picture(seen(run(), current, *points), columns=columns, lines=lines)
    assert any("w-030" in line and "measuring" in line for line in shown)
    assert len(shown) <= max(lines, 13)
    assert all(len(line) <= columns for line in shown)
    if not any("w-039" in line for line in shown):
        assert any("more points: plimsoll results bench/nightly" in line for line in shown)


def with_point(state: RunState, name: str) -> Any:
    assert state.current is not None
    return state.current.model_copy(update={"key": state.current.key.model_copy(update={"point": name})})


# Documents of other versions


def test_unknown_fields_are_ignored() -> None:
    found = watched_run(run(), watched_state(config_map(measuring(), somethingNew=1), UID), [])
    assert found.trial is not None


def test_unreadable_states_are_ignored() -> None:
    assert watched_state(config_map(measuring(), trialsDone="many"), UID) is None
    broken = config_map(measuring())
    broken["data"] = {"state.json": "{"}
    assert watched_state(broken, UID) is None


def test_a_status_of_another_version_is_an_error() -> None:
    with pytest.raises(ClickException, match="the status of bench/nightly cannot be read; is it of a later version"):
        watched_run(run(conditions=7), None, [])


# RunLines


def lines_of(*looks: WatchedRun | str) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    view = RunLines(console)
    with console.capture() as capture, view:
        for look in looks:
            view.trouble(look) if isinstance(look, str) else view.show(look)
    stamped = capture.get().splitlines()
    assert all(re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z  ", line) for line in stamped)
    return [line[22:] for line in stamped]


def test_every_change_is_a_line() -> None:
    first, second = run(message="trial 2 of 4"), run(message="trial 3 of 4")
    assert lines_of(seen(first), seen(first), seen(run()), seen(second)) == [
        "Measuring  1/4  trial 2 of 4",
        "Measuring  1/4  trial 3 of 4",
    ]


def test_every_new_number_is_a_line() -> None:
    later = point(trials="2/2", verdict="Valid", reason="")
    assert lines_of(seen(run(), None, point()), seen(run(), None, later), seen(run(), None, later)) == [
        "point w-000 (randread 4Ki qd16): 12,345 ± 678 IOPS read, p99 1.23 ms, 1/2 trials, Suspect LowOverlap +1",
        "Measuring  1/4",
        "point w-000 (randread 4Ki qd16): 12,345 ± 678 IOPS read, p99 1.23 ms, 2/2 trials, Valid",
    ]


def test_unknown_latency_is_omitted() -> None:
    both = point(operation="read / write", iops="46 / 47", p99="- / -", trials="1/1", reason="")
    assert lines_of(seen(run(), None, both))[0] == (
        "point w-000 (randread 4Ki qd16): 46 / 47 IOPS read / write, 1/1 trials, Suspect"
    )


def test_point_that_becomes_invalid_is_a_line() -> None:
    invalid = point(iops="", p99="", operation="", trials="0/2", verdict="Invalid", reason="NoTrialCounts")
    assert lines_of(seen(run(), None, unmeasured(0)), seen(run(), None, invalid)) == [
        "Measuring  1/4",
        "point w-000 (randread 4Ki qd16): 0/2 trials, Invalid NoTrialCounts",
    ]


def test_numbers_of_a_run_that_had_ended_before_are_no_news() -> None:
    assert lines_of(seen(ended(), None, point())) == ["Valid  1/4  all 2 points are measured"]


def test_problem_is_a_line_when_it_comes_and_when_it_comes_again() -> None:
    lost = run(condition("ClientsReady", "False", "client 1 is missing"))
    assert lines_of(seen(run()), seen(lost), seen(lost), seen(run()), seen(lost)) == [
        "Measuring  1/4",
        "client 1 is missing",
        "client 1 is missing",
    ]


def test_trouble_is_a_line_once() -> None:
    assert lines_of(seen(run()), "no route", "no route", seen(ended())) == [
        "Measuring  1/4",
        "the run cannot be read now: no route",
        "Valid  1/4  all 2 points are measured",
    ]


# Which


def test_terminal_gets_a_picture_and_a_file_lines() -> None:
    assert isinstance(view_on(Console(file=io.StringIO()), "r", "r", waiting="starting"), RunLines)
    assert isinstance(
        view_on(Console(file=io.StringIO(), force_terminal=True), "r", "r", waiting="starting"), LivePicture
    )


def test_screen_shows_and_takes_away_its_picture() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    with (
        console.capture() as capture,
        view_on(console, "bench/nightly", "bench/nightly", waiting="asking the cluster") as view,
    ):
        view.show(seen(run(message="trial 2 of 4")))
        view.trouble("no route")
        assert isinstance(view, LivePicture)
        view._live.refresh()
    text = capture.get()
    assert "bench/nightly: asking the cluster" in text
    assert "trial 2 of 4" in text
    assert "Not up to date: no route" in text
    assert text.endswith("\x1b[2K")


# Searches for the line


def searching(**changes: Any) -> WatchedRun:
    """Return a run with a search that is at its third probe."""
    document = run() | {"spec": {"workloads": [{"name": "w", "line": {"start": 500}}], "repetitions": 3}}
    state = measuring()
    current = state.current and state.current.model_copy(
        update={"key": state.current.key.model_copy(update={"point": "w-000", "pass_number": 2})}
    )
    unrated: dict[str, Any] = {
        "operation": "",
        "iops": "",
        "p99": "",
        "trials": "3 of at most 40",
        "verdict": "",
        "reason": "",
    }
    found = point(**(unrated | {"line": "between 8,000 and 16,000 at p99 <= 5 ms"} | changes))
    return seen(document, state.model_copy(update={"current": current}), found)


def test_the_interval_of_a_search_is_shown_while_it_goes_on() -> None:
    lines = picture(searching())
    assert lines[2] == "probe 3 of at most 40: w-000 (randread 4Ki qd16), 2 clients, 20 of 60 s"
    assert lines[4].split() == ["Point", "Clients", "Line", "Trials", "Verdict"]
    assert " ".join(lines[5].split()) == "w-000 2 between 8,000 and 16,000 at p99 <= 5 ms 3 of at most 40 measuring"


def test_points_beside_a_search_keep_their_columns() -> None:
    found = searching()
    both = seen(run(), None, *found.points, point(1))
    lines = picture(both, columns=175)
    heading = next(line for line in lines if line.startswith("Point"))
    assert heading.split() == (
        ["Point", "Parameters", "Clients", "Op", "IOPS", "±", "95", "%", "p99", "Line", "Trials", "Verdict", "Reason"]
    )


def test_every_probe_is_a_line() -> None:
    first = searching()
    second = searching(line="12,400 ± 600 at p99 <= 5 ms", trials="20", verdict="Valid")
    assert [line for line in lines_of(seen(run(), measuring()), first, second) if line.startswith("point")] == [
        "point w-000 (randread 4Ki qd16): line between 8,000 and 16,000 at p99 <= 5 ms, 3 of at most 40 probes",
        "point w-000 (randread 4Ki qd16): line 12,400 ± 600 at p99 <= 5 ms, 20 probes, Valid",
    ]
