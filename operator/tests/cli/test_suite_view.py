"""A suite in the terminal while a round is measured."""

import io
from typing import Any

from rich.console import Console

from plimsoll.api.suite_status import round_name
from plimsoll.cli.watch import Lines
from plimsoll.cli.watched import WatchedSuite, watched_suite
from support.command_line import MINUTE, active_round, owned_run, suite

RUN = owned_run("weekly-old-12345-1-0", "Unknown")
MEASURING = {"status": "Measuring", "message": "round 1: run 3 of 6"}
ACTIVE: dict[str, Any] = {"display": MEASURING, "round": active_round(1, done=2, current="weekly-old-12345-1-0")}


def test_every_change_is_one_line() -> None:
    file = io.StringIO()
    with Lines[WatchedSuite](Console(file=file, width=100), "suite") as view:
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
