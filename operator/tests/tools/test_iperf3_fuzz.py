"""Every document that real iperf3s printed, damaged in every way that a parser can notice (the same in every run).

The outcome is the true measurement, an error, or a measurement with a warning. test_text_fuzz.py damages the text.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.goldens import network_golden

from . import damage
from .damage import VALUES, check_totals, outcome, places, value_at
from .test_text_fuzz import IPERF3_CASES

every_case = pytest.mark.parametrize("case", IPERF3_CASES)


@every_case
def test_document_without_a_field(case: str) -> None:
    recorded = network_golden(case)
    for place in places(recorded.output.stdout):
        document = json.loads(recorded.output.stdout)
        del value_at(document, place[:-1])[place[-1]]

        check_totals(recorded.parse, recorded.output.stdout, json.dumps(document))


@every_case
def test_document_with_a_wrong_value(case: str) -> None:
    recorded = network_golden(case)
    for number, place in enumerate(places(recorded.output.stdout)):
        document = json.loads(recorded.output.stdout)
        value_at(document, place[:-1])[place[-1]] = VALUES[number % len(VALUES)]
        outcome(recorded.parse, json.dumps(document))


@every_case
def test_interval_that_is_repeated(case: str) -> None:
    recorded = network_golden(case)
    intervals = json.loads(recorded.output.stdout)["intervals"]
    for index, interval in enumerate(intervals):
        document: dict[str, Any] = json.loads(recorded.output.stdout)
        document["intervals"].insert(index, interval)
        check_totals(recorded.parse, recorded.output.stdout, json.dumps(document))


@every_case
@given(
    number=st.sampled_from(["inf", "-inf", "nan", "-nan", str(2**64), "-1"]),
    times=st.integers(1, 3),
    space=st.text(" \t\n", max_size=3),
)
@settings(max_examples=5)
def test_fields_that_nothing_reads_and_repeated_documents(case: str, number: str, times: int, space: str) -> None:
    recorded = network_golden(case)
    document = json.loads(recorded.output.stdout)
    for record in (document["start"], document["end"]["sum" if "udp" in case else "sum_sent"]):
        record["unread"] = "NUMBER"
    for interval in document["intervals"]:
        interval["streams"] = ["NUMBER"]
    text = json.dumps(document).replace('"NUMBER"', number)
    assert recorded.parse(f"{text}{space}" * times) == recorded.parse()


@every_case
@given(data=st.data())
@settings(max_examples=30)
def test_fields_that_may_be_wrong_change_no_total(case: str, data: st.DataObject) -> None:
    recorded = network_golden(case)
    intact = json.dumps(json.loads(recorded.output.stdout))
    damage.check("iperf3", recorded.parse, intact, data.draw(damage.damaged(intact, damage.harmless("iperf3"))))
