"""Results and state survive a round trip through JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from plimsoll.api.environment import Environment
from plimsoll.api.names import AbortReason, FailureReason, LatencyKind, Operation, Outcome, RunPhase, Verdict
from plimsoll.api.operation import Latency, OperationResult, OperationSummary, Rates, Statistic
from plimsoll.api.result import (
    Abort,
    BenchmarkResult,
    ClientSummary,
    Finding,
    ResultMeta,
    ResultSpec,
    ResultStatus,
    Summary,
    Trial,
    Window,
)
from plimsoll.api.status import CurrentTrial, Failure, OsdsSeen, Prefill, RunState, TrialKey

RATES = Rates(iops=100, bytes_per_second=409600)
STATISTIC = Statistic(trials=2, mean=0.1, standard_deviation=1 / 3, coefficient_of_variation=None, low=-1.5, high=2.0)
LATENCY = Latency(
    kind=LatencyKind.FULL,
    count=400,
    mean_nanoseconds=1e6 / 3,
    min_nanoseconds=1,
    max_nanoseconds=2**62,
    percentiles={"50": 10, "99.9": 20},
    histogram="text",
)
TRIAL = Trial(
    pass_number=1,
    attempt=2,
    epoch="e",
    clients=(0, 1, 2, 5),
    outcome=Outcome.MEASURED,
    started_at="2026-01-01T00:00:00.000Z",
    finished_at="2026-01-01T00:01:00.000Z",
    abort=Abort(reason=AbortReason.LATE_CLIENT, message="m"),
    verdict=Verdict.SUSPECT,
    findings=(Finding(reason="LowOverlap", verdict=Verdict.SUSPECT, message="m", clients=(1,)),),
    window=Window(
        start_nanoseconds=1,
        end_nanoseconds=2,
        last_end_nanoseconds=2,
        seconds=1e-9,
        whole_seconds=1e-9,
        spread_seconds=0.0,
        overlap=0.97,
    ),
    operations=(
        OperationResult(
            operation=Operation.READ,
            ios=1,
            bytes=4096,
            rates=RATES,
            whole_run=RATES,
            sum_of_rates=RATES,
            bias=-0.01,
            latency=LATENCY,
        ),
    ),
    slowest=(ClientSummary(client=0, node="n", start_offset_seconds=0.1, runtime_seconds=4.0, iops=9),),
    warnings=("w",),
)
RESULT = BenchmarkResult(
    metadata=ResultMeta(name="run-w-000", namespace="default", labels={"plimsoll.dev/run": "run"}),
    spec=ResultSpec(
        run="run",
        run_uid="u",
        point="w-000",
        workload="w",
        tool="fio",
        label="randread 4Ki qd1",
        parameters={"blockSize": "4Ki", "ioDepth": 1, "rateIops": None, "directIo": True},
        clients=4,
        runtime_seconds=4,
        ramp_seconds=1,
        repetitions=2,
    ),
    status=ResultStatus(
        trials=(TRIAL,),
        summary=Summary(
            trials=1,
            operations=(
                OperationSummary(
                    operation=Operation.READ,
                    iops=STATISTIC,
                    bytes_per_second=STATISTIC,
                    mean_latency=STATISTIC,
                    percentiles={"99": STATISTIC},
                    latency=LATENCY,
                ),
            ),
        ),
        verdict=Verdict.VALID,
        environment=Environment.model_validate({"nodes": ["a", "b"], "fio": "3.39"}),
        final=True,
    ),
)
KEY = TrialKey(point="w-000", pass_number=1, attempt=0)
STATE = RunState(
    epoch="e",
    phase=RunPhase.FAILED,
    message="m",
    registered=(0, 2),
    missing=(1,),
    prefill=Prefill(done_bytes=1, total_bytes=2**60),
    current=CurrentTrial(key=KEY, label="l", clients=(0, 1), starts_at=1.25, ends_at=2.5),
    in_flight=KEY,
    in_flight_since="2026-01-01T00:00:00.000Z",
    in_flight_t0_nanoseconds=2**62,
    osds=OsdsSeen(up=3, members=4),
    elapsed_seconds=1.5,
    trials_done=1,
    trials_total=2,
    failure=Failure(reason=FailureReason.CLIENTS_NOT_READY, message="m"),
)


@pytest.mark.parametrize("model", [RESULT, STATE, TRIAL, RunState()], ids=lambda model: type(model).__name__)
def test_json_round_trip(model: BaseModel) -> None:
    assert type(model).model_validate_json(model.model_dump_json()) == model
    assert type(model).model_validate(model.model_dump(mode="json")) == model
    assert type(model).model_validate(json.loads(json.dumps(model.model_dump(mode="json")))) == model


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite, st.none() | finite)
def test_numbers_survive_exactly(mean: float, low: float, high: float | None) -> None:
    statistic = Statistic(trials=3, mean=mean, low=low, high=high)
    assert Statistic.model_validate_json(statistic.model_dump_json()) == statistic


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for part in value.values() for key in keys(part)}
    return {key for part in value for key in keys(part)} if isinstance(value, list) else set()


@pytest.mark.parametrize("model", [RESULT, STATE], ids=lambda model: type(model).__name__)
def test_fields_are_camel_case(model: BaseModel) -> None:
    assert not [key for key in keys(model.model_dump(mode="json")) if "_" in key]


def test_only_bytes_are_whole() -> None:
    assert Rates.model_validate({"iops": 2.52, "bytesPerSecond": 1}).iops == 2.52
    with pytest.raises(ValidationError):
        Rates.model_validate({"iops": 1, "bytesPerSecond": 1.5})


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError, match="bogus"):
        RunState.model_validate({"bogus": 1})


def test_key_is_shown_for_people() -> None:
    assert str(KEY) == "w-000 pass 1"
    assert str(KEY.model_copy(update={"attempt": 2})) == "w-000 pass 1, attempt 2"
