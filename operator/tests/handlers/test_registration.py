"""The registered kopf handlers, and when they are called."""

import inspect
import subprocess
import sys
from typing import Any

import kopf

import plimsoll.operator.main  # noqa: F401 - registers the handlers

WATCHERS = {"queue_changed", "suite_changed", "suite_run_changed"}
HANDLERS = WATCHERS | {
    "drive",
    "drive_suite",
    "remove",
    "queue",
    "runs",
    "suites",
    "configure",
    "login",
    "close",
}


def registered() -> list[Any]:
    """Return all handlers of kopf's default registry, which importing `plimsoll.operator.main` fills."""
    registry: Any = kopf.get_default_registry()
    parts = (registry._activities, registry._indexing, registry._watching, registry._spawning, registry._changing)
    return [handler for part in parts for handler in part._handlers]


def test_every_handler_is_a_coroutine() -> None:
    """A plain function would run in a thread, beside the loop that everything else relies on."""
    ours = [handler for handler in registered() if handler.fn.__module__.startswith("plimsoll.")]
    assert {handler.id for handler in ours} == HANDLERS
    assert [handler.id for handler in ours if not inspect.iscoroutinefunction(handler.fn)] == []


def test_the_program_registers_them_by_itself() -> None:
    program = (
        "import kopf, plimsoll.programs.operator; "
        "print(*(handler.id for handler in kopf.get_default_registry()._spawning._handlers))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert {"drive", "drive_suite"} <= set(done.stdout.split())


def test_daemon_and_deletion_are_called_under_the_same_condition() -> None:
    """Otherwise there would be a finalizer without a deletion handler, or the other way round."""
    by_id = {handler.id: handler for handler in registered()}
    assert by_id["drive"].when is by_id["remove"].when


def test_kopf_watches_only_runs_and_suites() -> None:
    """It reads whole objects, which users can make large, and keeps them; and it might annotate them."""
    watched = {str(handler.selector) for handler in registered() if getattr(handler, "selector", None) is not None}
    assert len(watched) == 2
    assert all("benchmarkruns" in selector or "benchmarksuites" in selector for selector in watched)
