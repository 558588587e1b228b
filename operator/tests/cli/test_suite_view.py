"""A suite in the terminal while a round is measured."""

import io
from typing import Any

from rich.console import Console

from plimsoll.api.suite_status import round_name
from plimsoll.cli.watch import LivePicture, suite_picture, suite_view_on
from plimsoll.cli.watched import watched_suite
from support.command_line import MINUTE, active_round, owned_run, suite, suite_condition

RUN = owned_run("weekly-old-12345-1-0", "Unknown")
MEASURING = {"status": "Measuring", "message": "round 1: run 3 of 6"}
ACTIVE: dict[str, Any] = {"display": MEASURING, "round": active_round(1, done=2, current="weekly-old-12345-1-0")}
START = 1772334000.0
"""2026-03-01T03:00:00Z, the start of the active round."""


def picture(trouble: str = "", **status: Any) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(suite_picture("bench/weekly", watched_suite(suite(**status), RUN), START + 3700, trouble=trouble))
    return capture.get()


def test_the_picture_has_the_round_its_runs_and_what_the_current_one_does() -> None:
    text = picture(**ACTIVE)
    assert "bench/weekly  Measuring" in text
    assert "2/6 runs  1:01:40 elapsed" in text
    assert f"round {round_name(MINUTE + 1)} (Change): 2 of 6 runs done, weekly-old-12345-1-0" in text
    assert "Measuring  3/12 trials  trial 4" in text


def test_an_obstacle_and_an_outage_are_shown() -> None:
    text = picture("no route", **ACTIVE, conditions=[suite_condition("Stalled", "RunRefused", "quota exceeded")])
    assert "RunRefused: quota exceeded" in text
    assert "Not up to date: no route" in text


def test_without_a_round_the_picture_has_what_the_suite_waits_for() -> None:
    assert "no round is due" in picture()


def test_without_a_terminal_every_change_is_one_line() -> None:
    file = io.StringIO()
    with suite_view_on(Console(file=file, width=100), "bench/weekly") as view:
        view.show(watched_suite(suite()))
        view.show(watched_suite(suite(**ACTIVE), RUN))
        view.show(watched_suite(suite(**ACTIVE), RUN))
        view.trouble("no route")
        view.trouble("no route")
    round_ = f"round {round_name(MINUTE + 1)} (Change): 2 of 6 runs done, weekly-old-12345-1-0"
    assert [line.partition("  ")[2] for line in file.getvalue().splitlines()] == [
        "Idle  no round is due",
        f"Measuring  {round_}  Measuring  3/12 trials  trial 4",
        "the suite cannot be read now: no route",
    ]


def test_a_terminal_gets_a_picture() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    view = suite_view_on(terminal, "bench/weekly")
    with terminal.capture() as capture, view:
        view.show(watched_suite(suite(**ACTIVE)))
        assert isinstance(view, LivePicture)
        view._live.refresh()
    assert "bench/weekly: asking the cluster" in capture.get()
    assert "2/6 runs" in capture.get()
