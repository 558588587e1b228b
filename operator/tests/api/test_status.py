"""Conditions and the status of a run."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.api.status import MAX_HEADLINES, BenchmarkRunStatus, Condition, format_time, set_condition

NOON = datetime(2026, 1, 31, 12, 0, 0, 999_999, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


def condition(
    kind: ConditionType = ConditionType.MEASURED, status: ConditionStatus = UNKNOWN, **more: str
) -> Condition:
    return Condition(type=kind, status=status, reason="Because", **more)  # type: ignore[arg-type]


def test_new_condition_begins_now() -> None:
    (begun,) = set_condition((), condition(last_transition_time="2001-01-01T00:00:00Z"), NOON)
    assert begun.last_transition_time == "2026-01-31T12:00:00Z"


def test_same_status_keeps_its_time_and_takes_the_words() -> None:
    before = set_condition((), condition(message="old"), NOON)
    (after,) = set_condition(before, condition(message="new"), LATER)
    assert (after.last_transition_time, after.message) == ("2026-01-31T12:00:00Z", "new")


def test_changed_status_sets_the_transition_time() -> None:
    before = set_condition((), condition(), NOON)
    (after,) = set_condition(before, condition(status=TRUE), LATER)
    assert (after.status, after.last_transition_time) == (TRUE, "2026-01-31T12:05:00Z")


@pytest.mark.parametrize("kind", [ConditionType.RECONCILING, ConditionType.STALLED])
@pytest.mark.parametrize("status", [FALSE, UNKNOWN])
def test_abnormal_condition_is_there_only_while_true(kind: ConditionType, status: ConditionStatus) -> None:
    present = set_condition((), condition(kind, TRUE), NOON)
    assert [condition.type for condition in present] == [kind]
    assert set_condition(present, condition(kind, status), LATER) == ()
    assert set_condition((), condition(kind, status), LATER) == ()


def test_returning_abnormal_condition_has_a_new_transition_time() -> None:
    present = set_condition((), condition(ConditionType.STALLED, TRUE), NOON)
    absent = set_condition(present, condition(ConditionType.STALLED, FALSE), NOON)
    (again,) = set_condition(absent, condition(ConditionType.STALLED, TRUE), LATER)
    assert again.last_transition_time == format_time(LATER)


@given(st.lists(st.tuples(st.sampled_from(ConditionType), st.sampled_from(ConditionStatus)), max_size=30))
def test_conditions_are_one_of_a_type_in_a_fixed_order(changes: list[tuple[ConditionType, ConditionStatus]]) -> None:
    conditions: tuple[Condition, ...] = ()
    for number, (kind, status) in enumerate(changes):
        before = {held.type: held for held in conditions}
        conditions = set_condition(conditions, condition(kind, status), NOON + timedelta(seconds=number))
        others = {held.type: held for held in conditions if held.type is not kind}
        assert others == {name: held for name, held in before.items() if name is not kind}
    kinds = [held.type for held in conditions]
    assert kinds == [kind for kind in ConditionType if kind in kinds]


def test_times_are_utc() -> None:
    assert format_time(datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))) == "2025-12-31T23:00:00Z"


def test_time_needs_a_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        format_time(datetime(2026, 1, 1))  # noqa: DTZ001 - what must be refused


def test_status_of_an_unobserved_run() -> None:
    status = BenchmarkRunStatus()
    assert status.observed_generation == -1
    assert BenchmarkRunStatus.model_validate(status.model_dump(mode="json", exclude_none=True)) == status


def test_headline_is_bounded() -> None:
    row = {
        "workload": "w",
        "point": "w-000",
        "label": "randread 4Ki qd1",
        "operation": "read",
        "iops": 1,
        "bytesPerSecond": 4096,
        "latencyNanoseconds": {"p50": 1},
        "verdict": "Valid",
    }
    assert len(BenchmarkRunStatus.model_validate({"headline": [row] * MAX_HEADLINES}).headline) == MAX_HEADLINES
    with pytest.raises(ValidationError):
        BenchmarkRunStatus.model_validate({"headline": [row] * (MAX_HEADLINES + 1)})
