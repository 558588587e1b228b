"""The worse fault never gets the milder verdict."""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from types import MappingProxyType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus.fio_run import FioRun, Stretch
from plimsoll.api.names import Verdict
from plimsoll.measure.checks.check import Check
from plimsoll.measure.checks.judge import CHECKS
from plimsoll.measure.sample import Cells, ClientDocument, Clock, Measurement
from plimsoll.tools.base import Output, StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import VolumeKind, VolumeTarget
from support.client_documents import (
    BLOCK,
    RAMP,
    RUNTIME,
    SECOND,
    T0,
    document,
    measure,
    measurement,
    operation,
    quiet_host,
)

FIO = Fio()

SEVERITY = (Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID)
IOPS = 2000
STEPS = 12
"""Sizes of a fault that are looked at where a tool's output is made for each."""
PARAMETERS = FioParameters(io_depth=16)
CONTEXT = StepContext(
    step=StepKind.MEASURE,
    target=VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/volume", size=2**30),
    timing=Timing(ramp_seconds=RAMP, runtime_seconds=RUNTIME),
    seed=1,
    work_directory="/work",
)

Fault = Callable[[float], list[ClientDocument]]
"""From its size, 0 to 1, to what two clients send."""


def severity(documents: list[ClientDocument]) -> int:
    return SEVERITY.index(measure(*documents).verdict)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.reason)
@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_a_worse_value_of_a_check_never_gets_the_milder_verdict(check: Check, one: float, other: float) -> None:
    better, worse = sorted((one, other), reverse=check.is_low_bad)
    assert SEVERITY.index(check.verdict(better)) <= SEVERITY.index(check.verdict(worse))


# -- faults that a document shows -------------------------------------------------------------------------------------


def second(changed: ClientDocument) -> list[ClientDocument]:
    """Return it beside a good one, which has a node of its own."""
    return [document(0), changed]


def ran_for(seconds: float) -> Measurement:
    whole, rest = divmod(round(seconds * 1000), 1000)
    counts = (*(100.0,) * whole, *((float(rest // 10),) if rest else ()))
    cells = Cells(width_nanoseconds=SECOND, ios=counts, bytes=tuple(count * BLOCK for count in counts))
    ios = round(sum(counts))
    done = operation(1).model_copy(update={"ios": ios, "bytes": ios * BLOCK, "cells": cells})
    timed = done.latency.model_copy(update={"count": ios})
    return measurement(done.model_copy(update={"latency": timed}), runtime=round(seconds * 1000) * 10**6)


def on_host(path: str, **changes: object) -> list[ClientDocument]:
    host = quiet_host()
    part = getattr(host, path).model_copy(update=changes)
    return second(document(1, host=host.model_copy(update={path: part})))


SHOWN: Mapping[str, Fault] = MappingProxyType(
    {
        "starts late": lambda size: second(document(1, measurement(late=30 * size))),
        "starts early": lambda size: second(document(1, measurement(late=-30 * size))),
        "is launched late": lambda size: second(
            document(1, measurement(late=30 * size), launched_at=T0 + int(30 * size * SECOND))
        ),
        "clock is off": lambda size: second(document(1, clock=Clock(offset=size / 5, error=0.001))),
        "loses operations": lambda size: second(document(1, measurement(operation(lost_ios=int(100 * size))))),
        "gives up operations": lambda size: second(document(1, measurement(operation(dropped_ios=int(10 * size))))),
        "transfers less": lambda size: second(document(1, measurement(operation(short_ios=int(10 * size))))),
        "is throttled": lambda size: on_host("cpu", throttled_seconds=20 * size, throttled_periods=int(200 * size)),
        "has a busy node": lambda size: on_host("cpu", node_busy=size),
        "has a node without memory": lambda size: on_host(
            "memory", node_available=int((1 - size) * quiet_host().memory.node_total)
        ),
        "is slower": lambda size: second(document(1, measurement(operation(int(100 * (1 - size)))))),
    }
)


@pytest.mark.parametrize("fault", SHOWN.values(), ids=SHOWN.keys())
@given(st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None, max_examples=30)  # slow under load, not stuck
def test_a_greater_fault_never_gets_the_milder_verdict(fault: Fault, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert severity(fault(less)) <= severity(fault(more))


# -- faults that take time from a real tool's output ------------------------------------------------------------------


@cache
def ran(*still: tuple[float, float], stopped: bool = False) -> Measurement:
    """Return what a fio measured that completed nothing in those stretches.

    Args:
        still: in order, from second to second.
        stopped: it was fio itself that stood still then, and not only its storage.

    """
    edges = sorted({0.0, RUNTIME + 0.001, *(edge for stretch in still for edge in stretch if edge < RUNTIME)})
    stretches = tuple(
        Stretch(start=start, end=end, iops=0 if any(a <= start < b for a, b in still) else IOPS)
        for start, end in pairwise(edges)
    )
    run = FioRun(
        version="3.39",
        parameters=PARAMETERS,
        started_at=T0 // 10**6 + RAMP * 1000,
        stretches=stretches,
        slice_seconds=1,
        gap_milliseconds=10,
    )
    files = run.files()
    if stopped:
        files |= {"fio_bw.1.log": astray(still)}
    return FIO.parse(PARAMETERS, CONTEXT, Output(exit_code=0, stdout="", stderr="", files=files))


def astray(still: tuple[tuple[float, float], ...]) -> str:
    """Return the log of rates of a stopped fio: written every second, and again from the end of the stop on."""
    stops = [(round(1000 * start), round(1000 * end)) for start, end in still]
    lines, before, due = list[str](), 0, 1000
    while due <= 1000 * RUNTIME:
        moment = next((end for start, end in stops if start < due <= end), due)
        away = sum(max(0, min(moment, end) - max(before, start)) for start, end in stops)
        # What was in flight completes at the end of a stop.
        ios = IOPS * (moment - before - away) // 1000 + (PARAMETERS.io_depth if away else 0)
        lines.append(f"{moment}, {ios * 4 * 1000 // (moment - before)}, 0, 0, 0\n")
        before, due = moment, moment + 1000
    return "".join(lines)


def sent(client: int, measured: Measurement) -> ClientDocument:
    return document(client, measured)


def of_all(measured: Measurement) -> list[ClientDocument]:
    return [sent(0, measured), sent(1, measured)]


def of_one(measured: Measurement) -> list[ClientDocument]:
    return [sent(0, ran()), sent(1, measured)]


def once(start: float, lasts: float) -> tuple[tuple[float, float], ...]:
    return ((start, start + lasts),) if lasts else ()


def periodically(lasts: float) -> tuple[tuple[float, float], ...]:
    return tuple((start + 0.4, start + 0.4 + lasts) for start in range(1, RUNTIME - 2)) if lasts else ()


TAKEN: Mapping[str, Fault] = MappingProxyType(
    {
        "all stand still": lambda size: of_all(ran(*once(0.7, 18 * size))),
        "one stands still": lambda size: of_one(ran(*once(0.7, 18 * size))),
        "one is stopped": lambda size: of_one(ran(*once(0.7, 18 * size), stopped=True)),
        "one is stopped for moments": lambda size: of_one(ran(*once(5.3, 3 * size), stopped=True)),
        "all freeze every second": lambda size: of_all(ran(*periodically(0.9 * size))),
        "one freezes every second": lambda size: of_one(ran(*periodically(0.9 * size))),
    }
)


@pytest.mark.parametrize("fault", TAKEN.values(), ids=TAKEN.keys())
@given(st.integers(0, STEPS), st.integers(0, STEPS))
@example(4, 5)
@settings(deadline=None, max_examples=20)  # slow under load, not stuck
def test_more_time_lost_never_gets_the_milder_verdict(fault: Fault, one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert severity(fault(less / STEPS)) <= severity(fault(more / STEPS))


@pytest.mark.parametrize("fault", TAKEN.values(), ids=TAKEN.keys())
def test_faults_that_take_time_go_from_nothing_to_the_worst(fault: Fault) -> None:
    assert severity(fault(0)) == SEVERITY.index(Verdict.VALID)
    assert severity(fault(1)) == SEVERITY.index(Verdict.INVALID)


@pytest.mark.parametrize("seconds", [1.2, 1.5, 2.0, 2.5])
def test_a_client_that_was_stopped_is_judged_by_how_long(seconds: float) -> None:
    numbers = measure(*of_one(ran(*once(5.3, seconds), stopped=True)))
    (finding,) = [finding for finding in numbers.findings if finding.reason == "ClientStalled"]
    assert finding.clients == (1,)
    assert finding.verdict is (Verdict.INVALID if seconds > RUNTIME / 10 else Verdict.SUSPECT)
