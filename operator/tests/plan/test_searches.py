"""Searches for the line: their points, what they cost, and what makes them impossible."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.environment import Environment
from plimsoll.api.errors import SpecError
from plimsoll.api.line import MOST_PROBES, LineSearch
from plimsoll.api.run import BenchmarkRun
from plimsoll.plan.expand import (
    TRIAL_OVERHEAD_SECONDS,
    check_fits_deadline,
    estimate,
    expand,
    make_plan,
    most_trials,
)
from plimsoll.plan.fingerprint import differences, fingerprint
from plimsoll.plan.refusals import at_load, search_settings
from plimsoll.tools.fio.parameters import FioParameters

from .conftest import _run

MakeRun = Callable[..., BenchmarkRun]
Fields = Mapping[str, Any]

OBJECTIVES = [{"percentile": "99", "latency": "5ms"}]
RATE: Fields = {"vary": "Rate", "start": 800, "limit": 80_000, "objectives": OBJECTIVES}
DEPTH: Fields = {"vary": "Depth", "start": 8, "limit": 1024, "objectives": OBJECTIVES}


def searching(fio: Fields, line: Fields, **spec: Any) -> BenchmarkRun:
    return _run({"fio": dict(fio), "line": dict(line)}, **spec)


def problem(run: BenchmarkRun) -> str:
    with pytest.raises(SpecError) as caught:
        expand(run)
    (found,) = caught.value.problems
    return str(found).removeprefix("spec.workloads[0].")


def test_each_combination_of_the_axes_is_a_point_without_a_load() -> None:
    points = expand(searching({"ioDepth": [64], "blockSize": ["4Ki", "8Ki"]}, RATE))
    assert [point.label for point in points] == ["randread 4Ki up to qd64", "randread 8Ki up to qd64"]
    assert not {"rateIops", "arrivals"} & points[0].parameters.keys()
    assert points[0].line == LineSearch.model_validate(RATE)
    (deep,) = expand(searching({"jobs": 2}, DEPTH))
    assert (deep.label, "ioDepth" in deep.parameters) == ("randread 4Ki x2 jobs", False)


def stormy(disturb: Fields, line: Fields = RATE, **fio: Any) -> BenchmarkRun:
    workload = {"fio": {"ioDepth": [64], **fio}, "line": dict(line), "runtimeSeconds": 300}
    rook = {"cluster": {"namespace": "r", "name": "r"}, "pool": {"replicated": {"size": 3}}}
    storage = {"rook": rook, "volume": {"size": "1Gi"}}
    return _run({**workload, "disturb": {"osds": {"action": "Out"}, **disturb}}, storage=storage)


def test_a_search_with_a_disturbance_is_two_one_after_the_other_and_the_calm_one_does_not_disturb() -> None:
    run = stormy({"afterSeconds": 30}, ioDepth=[16, 32, 64])
    plan = make_plan(run, seed=3)
    calm, storm = plan.points[:2]
    assert (calm.name, calm.disturb, calm.runtime_seconds, most_trials(plan, calm)) == ("w0-000", None, 30, 40)
    assert (storm.name, storm.calm, storm.runtime_seconds, most_trials(plan, storm)) == (
        ("w0-000-storm", "w0-000", 300, 20)
    )
    assert storm.label == f"{calm.label}, 1 OSD out"
    assert all(order[order.index(number) + 1] == number + 1 for order in plan.order for number in (0, 2, 4))
    assert len({make_plan(run, seed=seed).order for seed in range(5)}) > 1


@pytest.mark.parametrize(
    ("start", "seconds", "expected"),
    [
        (8, {"afterSeconds": 30}, "line.start: 8 offers 240 operations in 30 s"),
        (8, {"forSeconds": 40}, "line.start: 8 offers 320 operations in 40 s"),
        (800, {"forSeconds": 40}, "disturb.forSeconds: 40 is less than 10 times the 5 s"),
    ],
)
def test_both_searches_need_enough_operations(start: int, seconds: Fields, expected: str) -> None:
    objectives = [{"latency": "5ms"}, {"latency": "5s", "percentile": "50"}] if start > 8 else OBJECTIVES
    assert problem(stormy(seconds, {**RATE, "start": start, "objectives": objectives})).startswith(expected)


@pytest.mark.parametrize(
    ("fio", "line", "limits"),
    [
        ({"ioDepth": [64]}, RATE, [100_000, 400_000]),
        ({"jobs": 2}, DEPTH, [4096, 16_384]),
    ],
    ids=["rate", "depth"],
)
def test_without_a_limit_a_search_offers_as_much_as_the_clients_can(
    fio: Fields, line: Fields, limits: list[int]
) -> None:
    unlimited = {key: value for key, value in line.items() if key != "limit"}
    points = expand(_run({"fio": dict(fio), "line": unlimited, "clients": [2, 8]}))
    assert [point.line.limit for point in points if point.line] == limits
    too_much = _run({"fio": dict(fio), "line": {**unlimited, "start": limits[1] + 1}})
    assert problem(too_much).startswith(f"line.start: {limits[1] + 1} is more than 8 clients")


def test_an_objective_is_about_the_99th_percentile_unless_it_says_otherwise() -> None:
    line = {**RATE, "objectives": [{"latency": "5ms"}]}
    assert expand(searching({"ioDepth": [64]}, line)) == expand(searching({"ioDepth": [64]}, RATE))


def test_a_trial_of_a_search_has_its_load() -> None:
    run = searching({"ioDepth": [64]}, RATE)
    (point,) = expand(run)
    assert point.line is not None
    loaded = at_load(point, point.line, 1600)
    assert loaded.label == "randread 4Ki qd64 offers 200 IOPS"
    assert (loaded.parameters["rateIops"], loaded.parameters["arrivals"]) == (200, "Poisson")
    (deep,) = expand(searching({"jobs": 2}, DEPTH))
    assert deep.line is not None
    assert at_load(deep, deep.line, 64).label == "randread 4Ki qd4 x2 jobs"


@given(
    clients=st.integers(1, 8),
    percent=st.integers(1, 99),
    share=st.floats(0, 1),
    start=st.integers(2000, 9000),
)
def test_every_load_of_a_search_is_shared_exactly(clients: int, percent: int, share: float, start: int) -> None:
    fio = {"pattern": "randrw", "readPercent": percent, "ioDepth": [16]}
    line = {**RATE, "start": start, "limit": 9000, "objectives": [{"percentile": "50", "latency": "1us"}]}
    (point,) = expand(searching(fio, line, clients={"count": clients}))
    assert point.line is not None
    settings = search_settings(point, point.line)
    load = settings.offered(settings.lowest + share * (settings.highest - settings.lowest))
    parameters = FioParameters.model_validate(at_load(point, point.line, load).parameters)
    assert parameters.rate_iops is not None
    assert parameters.rate_iops * clients == load


@pytest.mark.parametrize(
    ("fio", "line", "expected"),
    [
        (
            {"ioDepth": [64], "rateIops": 500},
            RATE,
            "fio.rateIops: 500 must be absent with line, which varies the load; remove it",
        ),
        ({"ioDepth": [3]}, RATE, "fio.ioDepth: 3 must be 2, 4, 8, 16, 32 or 64"),
        ({"ioDepth": [1]}, RATE, "fio.ioDepth: 1 must be 2, 4, 8, 16, 32 or 64"),
        ({"ioDepth": [128]}, RATE, "use 64, and more clients"),
        ({}, RATE, "fio.ioDepth: 1 must be 2, 4, 8, 16, 32 or 64"),
        ({"ioDepth": [64], "directIo": False}, RATE, "fio.directIo: false must be true"),
        ({"ioDepth": [4]}, DEPTH, "fio.ioDepth: 4 must be absent, because line varies it; remove it"),
        ({"rateIops": 500}, DEPTH, "fio.rateIops: 500 must be absent with line"),
        ({"engine": "sync"}, DEPTH, "fio.engine: sync must be asynchronous"),
        ({"pattern": "randwrite", "fsyncEvery": 8}, DEPTH, "fio.fsyncEvery: 8 must be 0"),
        ({"directIo": False}, DEPTH, "fio.directIo: false must be true"),
        ({"ioDepth": [64]}, {**RATE, "start": 1, "limit": 7}, "line.limit: 7 is lower than every load"),
        ({"ioDepth": [64]}, {**RATE, "limit": 400_008}, "line.limit: 400008 is more than 8 clients"),
        ({"ioDepth": [64], "jobs": 2}, RATE, "fio.jobs: 2 must be 1"),
        ({"ioDepth": [64], "pattern": "randwrite", "fsyncEvery": 8}, RATE, "fio.fsyncEvery: 8 must be 0"),
        (
            {"jobs": 2},
            {**DEPTH, "limit": 2 * 8 * 1025},
            "which is 16384 operations in flight; lower it to at most 16384, or raise jobs",
        ),
    ],
)
def test_impossible_searches_are_refused_at_the_field(fio: Fields, line: Fields, expected: str) -> None:
    assert expected in problem(searching(fio, line))


@pytest.mark.parametrize(
    ("fio", "line"),
    [
        ({"ioDepth": [2, 4, 8, 16, 32, 64]}, RATE),
        ({"ioDepth": [64]}, {**RATE, "start": 1, "limit": 8, "objectives": [{**OBJECTIVES[0], "percentile": "50"}]}),
        ({"ioDepth": [64]}, {**RATE, "limit": 80_000}),
        ({"jobs": 2}, {**DEPTH, "limit": 2 * 8 * 1024}),
        ({"ioDepth": [1]}, DEPTH),
    ],
)
def test_searches_at_the_bounds_are_possible(fio: Fields, line: Fields) -> None:
    assert expand(searching(fio, line))


def test_a_search_until_the_data_set_is_done_is_refused() -> None:
    run = _run({"fio": {"ioDepth": [64], "until": "DataSetDone"}, "rampSeconds": 0, "line": dict(RATE)})
    assert problem(run).startswith("fio.until: DataSetDone cannot be set with line")


def test_a_search_with_more_arrivals_than_fio_can_hold_is_refused() -> None:
    # 4,000,000 arrivals of each of 8 clients in a ramp of 10 s, the runtime, and 10 s to spare.
    long = {"fio": {"ioDepth": [64]}, "line": dict(RATE), "runtimeSeconds": 480}
    assert "which is 64000 operations per second" in problem(_run(long))
    assert expand(_run({**long, "line": {**RATE, "limit": 64_000}}))


def test_a_search_for_a_rate_through_librbd_is_refused() -> None:
    line = {"fio": {"ioDepth": [64]}, "line": dict(RATE)}
    assert "cannot have arrivals Poisson, or line with vary Rate, with access LibRBD" in problem(
        _run(line, storage=LIBRBD)
    )
    assert expand(_run({"fio": {}, "line": dict(DEPTH)}, storage=LIBRBD))


def test_a_tool_that_cannot_vary_its_load_names_those_that_can() -> None:
    run = _run({"rbdBench": {}, "line": dict(DEPTH)}, storage=LIBRBD)
    assert problem(run) == "line.vary: Depth applies only to fio; use it, or remove line"


LIBRBD = {
    "rook": {"cluster": {"namespace": "r", "name": "r"}, "pool": {"replicated": {"size": 3}}},
    "volume": {"size": "4Mi", "access": "LibRBD"},
}


def test_a_first_load_with_too_few_operations_for_the_percentile_names_loads_and_runtimes_that_suffice() -> None:
    slow = {**RATE, "start": 80, "objectives": [{"percentile": "99.9", "latency": "5ms"}]}
    said = problem(searching({"ioDepth": [64]}, slow))
    assert said == (
        "line.start: 80 offers 4800 operations in 60 s, but percentile 99.9 needs 10000, so that 10 are beyond it; "
        "raise it to at least 168, or runtimeSeconds to at least 125, or choose a lower percentile"
    )
    assert expand(searching({"ioDepth": [64]}, {**slow, "start": 168}))
    longer = {"fio": {"ioDepth": [64]}, "line": slow, "runtimeSeconds": 125}
    assert expand(_run(longer))


def test_a_trial_in_which_a_growing_backlog_would_not_be_late_is_refused() -> None:
    """At twice what the storage completes, an operation waits half of the trial at most."""
    slow = {**RATE, "objectives": [*OBJECTIVES, {"percentile": "50", "latency": "6.000001s"}]}
    assert problem(searching({"ioDepth": [64]}, slow)) == (
        "runtimeSeconds: 60 is less than 10 times the 6 s that operations may take, so that a backlog which grows "
        "until the end would not be late; raise it to at least 61, or lower latency"
    )
    assert expand(_run({"fio": {"ioDepth": [64]}, "line": slow, "runtimeSeconds": 61}))
    closed = {**DEPTH, "objectives": slow["objectives"]}
    assert expand(searching({}, closed)), "a closed loop has no backlog"


def test_the_rarest_operation_needs_as_many() -> None:
    mixed = {"pattern": "randrw", "readPercent": 90, "ioDepth": [64]}
    assert "needs 10000" in problem(searching(mixed, {**RATE, "start": 160}))
    assert expand(searching(mixed, {**RATE, "start": 240}))


def test_a_search_counts_as_the_most_trials_that_it_makes() -> None:
    run = _run({"fio": {"ioDepth": [64]}, "line": dict(RATE)}, {"fio": {}}, repetitions=3)
    cost = estimate(make_plan(run, seed=1))
    assert (cost.points, cost.searches, cost.trials) == (2, 1, MOST_PROBES + 3)
    assert cost.measuring_seconds == (MOST_PROBES + 3) * (70 + TRIAL_OVERHEAD_SECONDS)


def test_a_search_that_would_be_cut_off_is_refused() -> None:
    run = {"fio": {"ioDepth": [64]}, "line": dict(RATE)}
    prepare = {"settleSeconds": 0}
    needed = MOST_PROBES * (70 + TRIAL_OVERHEAD_SECONDS)
    check_fits_deadline(make_plan(_run(run, prepare=prepare, timeouts={"totalSeconds": needed}), seed=1))
    short = make_plan(_run(run, prepare=prepare, timeouts={"totalSeconds": needed - 1}), seed=1)
    with pytest.raises(SpecError) as caught:
        check_fits_deadline(short)
    said = str(caught.value)
    assert f"less than the {needed} s that at most 40 trials take" in said
    assert "move workloads to another run" in said
    assert "repetitions" not in said


def identity_and_context(line: Fields | None) -> Any:
    fields: dict[str, Any] = {"fio": {"ioDepth": [64]}} | ({"line": dict(line)} if line else {})
    plan = make_plan(_run(fields), seed=1)
    return fingerprint(plan, plan.points[0], Environment())


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({"precisionPercent": 5}, [("context", "search.precisionPercent")]),
        ({"start": 1600, "limit": 60_000}, [("context", "search.limit"), ("context", "search.start")]),
        (
            {"objectives": [{"percentile": "99", "latency": "2ms"}]},
            [("identity", "line.latency.99")],
        ),
    ],
)
def test_only_what_is_sought_belongs_to_the_identity(changed: Fields, parts: list[tuple[str, str]]) -> None:
    found = differences(identity_and_context(RATE), identity_and_context({**RATE, **changed}))
    assert [(one.part, one.key) for one in found] == parts


def test_the_order_of_objectives_does_not_matter() -> None:
    both = [*OBJECTIVES, {"percentile": "50", "latency": "900us"}]
    first = identity_and_context({**RATE, "objectives": both})
    assert first.identity_sha256 == identity_and_context({**RATE, "objectives": both[::-1]}).identity_sha256


def test_a_point_without_a_search_is_identified_without_one() -> None:
    assert not {"line", "search"} & {*identity_and_context(None).identity, *identity_and_context(None).context}
