"""The registered kopf handlers, and when they are called."""

import inspect
import subprocess
import sys
from typing import Any

import kopf

import plimsoll.operator.main  # noqa: F401 - registers the handlers

WATCHERS = {"run_changed", "queue_changed", "suite_changed"}
HANDLERS = WATCHERS | {"configure", "login", "close"}


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
        "import kopf, plimsoll.operator.main; "
        "print(*(handler.id for handler in kopf.get_default_registry()._watching._handlers))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) == WATCHERS


def test_kopf_waits_for_nothing_and_writes_nothing() -> None:
    """While a handler or a patch takes its time, kopf collects the changes of the object, however many there are.

    With an index it waits until all objects are indexed, and the work for that grows with the square of their number.
    """
    registry: Any = kopf.get_default_registry()
    assert not (*registry._indexing._handlers, *registry._spawning._handlers, *registry._changing._handlers)


def test_a_run_is_in_the_queue_before_it_wakes_others() -> None:
    """A run that is looked at and is not in the queue would overtake all others."""
    registry: Any = kopf.get_default_registry()
    of_runs = [handler.id for handler in registry._watching._handlers if "benchmarkruns" in str(handler.selector)]
    assert of_runs == ["run_changed", "queue_changed"]


def test_kopf_watches_only_runs_and_suites() -> None:
    """It reads whole objects, which users can make large, and keeps them; and it might annotate them."""
    watched = {str(handler.selector) for handler in registered() if getattr(handler, "selector", None) is not None}
    assert len(watched) == 2
    assert all("benchmarkruns" in selector or "benchmarksuites" in selector for selector in watched)
