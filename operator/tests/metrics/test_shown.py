"""What the metrics of runs and suites read alike."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from plimsoll.metrics import statuses
from plimsoll.metrics.statuses import UNREADABLE

Reader = Callable[[Mapping[str, Any]], statuses.RunRecord | statuses.SuiteRecord]
READERS = pytest.mark.parametrize("record_of", [statuses.run_record_of, statuses.suite_record_of], ids=["run", "suite"])

NAMES = {"name": "one", "namespace": "bench", "creationTimestamp": "1970-01-01T00:01:00Z"}
CONDITIONS = [
    {"type": "Ready", "status": "True", "reason": "Old"},
    {"type": "Stalled", "status": "Unknown", "reason": "Waiting", "message": "a later version's field"},
    {"type": "Ready", "status": "False", "reason": "New"},
]


@READERS
def test_conditions_have_values_and_the_last_one_of_a_type_counts(record_of: Reader) -> None:
    record = record_of({"metadata": NAMES, "status": {"conditions": CONDITIONS, "display": {"status": "Running"}}})
    assert record.conditions == (("Ready", "New", 0), ("Stalled", "Waiting", -1))
    assert (record.created, record.status) == (60.0, "Running")


@READERS
def test_an_invalid_status_is_unreadable(record_of: Reader) -> None:
    assert record_of({"metadata": NAMES, "status": {"conditions": "none"}}).status == UNREADABLE
