"""What a look at a run that measures costs the operator, against how much was measured before."""

import json
import statistics
import subprocess
import sys
from typing import Any

from figures import heading, mebibytes, median_and_range, milliseconds, plain, table
from place import BENCH, fresh, running

_CASES = ((64, 1, 10), (64, 10, 10), (512, 10, 10), (512, 10, 1000))
"""Points, passes, clients."""
_LOOKS = 8
_LIMIT_SECONDS = 600


def measure() -> None:
    heading(
        f"looks: {_LOOKS} looks at a run by a process that does nothing else",
        "Lists of the run's objects over HTTP, what has changed of them, and the decision. The first look reads\n"
        "   everything, as after a restart of the operator; later nothing changes; then every Job, pod and claim\n"
        "   changes before each look, as at a run's start. Computed: processor time. Blocked: how late the event\n"
        "   loop wakes up at worst in a look, asked every millisecond.",
    )
    cases = [(f"{case[0]} points, {case[1]} passes, {case[2]} clients", _run(*case)) for case in _CASES]
    rows = [row for name, found in cases for row in _rows(name, found)]
    columns = ("first", "later, median", f"range over {_LOOKS - 1}", "all changed, median", f"range over {_LOOKS}")
    table(("run, quantity", *columns), rows)
    least = cases[0][1]
    for name, found in cases[1:]:
        times = plain(2)(_median(found, "computed") / _median(least, "computed"))
        print(f"   {name}: a later look computes {times} times as long as with {cases[0][0]}")


def _run(points: int, passes: int, clients: int) -> dict[str, Any]:
    directory = fresh("looks")
    shape = [str(points), str(passes), str(clients)]
    with running([str(BENCH / "apiserver.py"), *shape], directory / "apiserver.log", pipes=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        assert port, (directory / "apiserver.log").read_text()
        argv = [sys.executable, str(BENCH / "look_child.py"), port, str(_LOOKS)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=_LIMIT_SECONDS)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _rows(name: str, found: dict[str, Any]) -> list[tuple[str, ...]]:
    first, *later = found["looks"]
    rows = [
        (
            f"{name}, {quantity}",
            milliseconds(first[quantity]),
            *median_and_range(_all(later, quantity), milliseconds),
            *median_and_range(_all(found["changed"], quantity), milliseconds),
        )
        for quantity in ("computed", "blocked", "seconds")
    ]
    memory = f"{mebibytes(found['before'])} before any look"
    return [*rows, (f"{name}, most memory", mebibytes(found["peak"]), "", memory, "", "")]


def _all(looks: list[dict[str, float]], quantity: str) -> list[float]:
    return [look[quantity] for look in looks]


def _median(found: dict[str, Any], quantity: str) -> float:
    return statistics.median(_all(found["looks"][1:], quantity))
