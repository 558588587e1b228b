"""A suite in the terminal while a round is measured."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from plimsoll.api.suite_status import round_name
from plimsoll.cli.watch import SuiteLines
from plimsoll.cli.watched import WatchedPoint, WatchedSuite, watched_run, watched_suite
from support.command_line import MINUTE, active_round, owned_run, suite

RUN = owned_run("weekly-old-12345-1-0", "Unknown")
MEASURING = {"status": "Measuring", "message": "round 1: run 3 of 6"}
ACTIVE: dict[str, Any] = {"display": MEASURING, "round": active_round(1, done=2, current="weekly-old-12345-1-0")}


def measuring(points: Sequence[WatchedPoint] = ()) -> WatchedSuite:
    return replace(watched_suite(suite(**ACTIVE)), run=watched_run(RUN, None, points))


def test_every_change_is_one_line_and_so_is_every_point_of_the_current_run() -> None:
    file = io.StringIO()
    point = WatchedPoint(name="w-000", label="randwrite 4Ki", clients="3", operation="write", iops="912", trials="1")
    with SuiteLines(Console(file=file, width=100)) as view:
        view.show(watched_suite(suite()))
        view.show(measuring())
        view.show(measuring())
        view.show(measuring([point]))
        view.trouble("no route")
        view.trouble("no route")
        view.show(measuring([point]))
        view.show(replace(measuring(), run=None))
        view.show(watched_suite(suite()))
    round_ = f"round {round_name(MINUTE + 1)} (Change): 2 of 6 runs done, weekly-old-12345-1-0"
    assert [line.partition("  ")[2] for line in file.getvalue().splitlines()] == [
        "no round is active",
        f"Measuring  {round_}",
        "Measuring  3/12  trial 4",
        "point w-000 (randwrite 4Ki): 912 IOPS write, 1 trials",
        "the suite cannot be read now: no route",
        f"Measuring  {round_}",
    ]
