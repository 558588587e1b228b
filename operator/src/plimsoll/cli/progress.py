"""Showing a run's progress: a bar on a terminal, a line per step elsewhere."""

import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from plimsoll.api.names import RunPhase
from plimsoll.api.state import RunState
from plimsoll.conductor.sink import read_state
from plimsoll.plan.document import Plan
from plimsoll.plan.estimate import TRIAL_OVERHEAD_SECONDS


class ProgressView(AbstractContextManager["ProgressView"]):
    """Follows the state that the conductor publishes in a results directory."""

    def __init__(self, console: Console, plan: Plan, results: Path) -> None:
        """Show nothing yet."""
        self._console = console
        self._plan = plan
        self._results = results
        self._said = ""
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amount]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[remaining]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task("starting", total=1.0, amount="", remaining="")

    def __enter__(self) -> Self:
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line beside the bar."""
        self._console.print(text, highlight=False)

    def update(self) -> None:
        """Show the present state."""
        state = read_state(self._results)
        if state is None:
            return
        now = time.time()
        self._bar.update(
            self._task,
            description=describe(state, self._plan),
            completed=done_share(state, self._plan, now),
            amount=f"{state.trials_done}/{state.trials_total}",
            remaining=f"about {_minutes(remaining_seconds(state, self._plan, now))} left",
        )
        between_trials = state.phase is RunPhase.MEASURING and state.current is None
        if not self._console.is_terminal and not between_trials:
            self._say_once(describe(state, self._plan))

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._console.print(text, highlight=False)


def describe(state: RunState, plan: Plan) -> str:
    """Return what a run is doing, in one line."""
    if state.current is not None:
        key = state.current.key
        again = f", attempt {key.attempt + 1}" if key.attempt else ""
        return f"pass {key.pass_number + 1}/{plan.repetitions}{again}: {key.point} ({state.current.label})"
    if state.message:
        return state.message
    if state.phase is RunPhase.PREPARING and state.prefill.total_bytes:
        return f"prefilling {decimal(state.prefill.total_bytes)}"
    return state.phase.value.lower()


def done_share(state: RunState, plan: Plan, now: float) -> float:
    """Return how much of a run is done, 0 to 1, by time."""
    total = plan.repetitions * sum(_seconds(plan, index) for index in range(len(plan.points)))
    return 1.0 - min(1.0, remaining_seconds(state, plan, now) / total) if total else 1.0


def remaining_seconds(state: RunState, plan: Plan, now: float) -> float:
    """Return how long the trials that are left take, if none must be repeated.

    Settled trials are taken to be the first of the plan's order, which they are but for retries.
    """
    order = [index for passes in plan.order for index in passes]
    left = sum(_seconds(plan, index) for index in order[state.trials_done :])
    if state.current is None:
        return float(left)
    length = state.current.ends_at - state.current.starts_at + TRIAL_OVERHEAD_SECONDS
    # A trial that overruns takes nothing from those after it.
    return left - min(max(0.0, now - state.current.starts_at), length)


def _seconds(plan: Plan, index: int) -> int:
    point = plan.points[index]
    return point.ramp_seconds + point.runtime_seconds + TRIAL_OVERHEAD_SECONDS


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
