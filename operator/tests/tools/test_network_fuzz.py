"""Every recorded output of the network tools, damaged in every way that a parser can notice (the same in every run).

The outcome is the true measurement, an error, or a measurement with a warning.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.measure.sample import Measurement
from support.goldens import VERSIONS, NetworkGolden, network_golden

from . import damage

_MEASURED = {
    "iperf3": ("tcp-send", "tcp-receive", "tcp-4-streams", "udp-send", "udp-receive", "udp-lossy"),
    "ping": ("good", "large", "losses", "went-away"),
    "netcat": ("receive",),
}
"""The cases of a measurement that was not cut short."""
MEASURED_CASES = [
    f"{program}-{version}-{case}"
    for program, cases in _MEASURED.items()
    for version in VERSIONS[program]
    for case in cases
]
TEXTS = [case for case in MEASURED_CASES if not case.startswith("iperf3")]
DOCUMENTS = [case for case in MEASURED_CASES if case.startswith("iperf3")]
NOISE = '\x00\x1b\x7f\ufffd{}[]",:-eE. \n'
VALUES: list[object] = [
    None, True, -1, 0.5, 10**12, 2**63, 10**400, float("nan"), float("inf"), "7", "x\ud800\x00", [], [{}], {}, {"a": 1},
]  # fmt: skip
every_case = pytest.mark.parametrize("case", MEASURED_CASES)


def totals(measurement: Measurement) -> object:
    return measurement.runtime, measurement.operations


def check(recorded: NetworkGolden, stdout: str) -> None:
    truth = recorded.parse()
    try:
        found = recorded.parse(stdout)
    except OutputError as error:
        str(error).encode()
        return
    found.model_dump_json().encode()
    remarks = {*found.errors, *found.warnings} - {*truth.errors, *truth.warnings}
    assert remarks or totals(found) == totals(truth), "a wrong number without a warning"


def survives(recorded: NetworkGolden, stdout: str) -> None:
    try:
        recorded.parse(stdout).model_dump_json().encode()
    except OutputError as error:
        str(error).encode()


def damaged_lines(text: str) -> Iterator[str]:
    """Yield it without each line, and with each line twice."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        yield "".join([*lines[:number], *lines[number + 1 :]])
        yield "".join([*lines[:number], line, *lines[number:]])


@pytest.mark.parametrize("case", [case for case in TEXTS if case.startswith("ping")])
def test_lines_that_are_missing_or_repeated(case: str) -> None:
    recorded = network_golden(case)
    for damaged in damaged_lines(recorded.output.stdout):
        check(recorded, damaged)


def test_lines_of_the_meter_that_are_missing_or_repeated_leave_true_numbers() -> None:
    """Each line counts from the start, so the numbers between two others stay true, but a missing end is an error."""
    recorded = network_golden("netcat-1.10-receive")
    (truth,) = recorded.parse().peers
    for damaged in damaged_lines(recorded.output.stdout):
        try:
            found = recorded.parse(damaged)
        except OutputError:
            continue
        (peer,) = found.peers
        rate = truth.bytes / truth.seconds
        assert found.errors or peer.bytes / peer.seconds == pytest.approx(rate, rel=0.05)


@every_case
def test_output_that_breaks_off(case: str) -> None:
    recorded = network_golden(case)
    whole = recorded.output.stdout.rstrip()
    for end in range(0, len(whole), max(1, len(whole) // 60)):
        if case.startswith("netcat") and whole[:end].endswith("\n"):
            continue
        check(recorded, whole[:end])


@every_case
def test_output_with_noise(case: str) -> None:
    recorded = network_golden(case)
    chance = random.Random(case)  # noqa: S311  # the same damage in every run
    text = recorded.output.stdout
    for _ in range(60):
        noise = "".join(chance.choice(NOISE) for _ in range(chance.randint(1, 6)))
        start = chance.randrange(len(text))
        survives(recorded, text[:start] + noise + text[start + chance.randint(0, 6) :])


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("token", ["9" * 400, "1e308", "-1", "nan", "", "x\ud800"])
def test_word_that_became_another(case: str, token: str) -> None:
    recorded = network_golden(case)
    words = recorded.output.stdout.split(" ")
    for number in range(0, len(words), max(1, len(words) // 100)):
        survives(recorded, " ".join([*words[:number], token, *words[number + 1 :]]))


def fields(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if isinstance(node, dict):
            yield (*path, key)
        yield from fields(value, (*path, key))


def holder(document: Any, path: tuple[str | int, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


@pytest.mark.parametrize("case", DOCUMENTS)
def test_document_without_a_field(case: str) -> None:
    recorded = network_golden(case)
    for path in fields(json.loads(recorded.output.stdout)):
        document = json.loads(recorded.output.stdout)
        del holder(document, path)[path[-1]]
        if path == ("end", "sum_received") and "udp" in case:
            # As in old versions, where the total and the losses lead to about the same.
            survives(recorded, json.dumps(document))
            continue
        check(recorded, json.dumps(document))


@pytest.mark.parametrize("case", DOCUMENTS)
def test_document_with_a_wrong_value(case: str) -> None:
    recorded = network_golden(case)
    for number, path in enumerate(fields(json.loads(recorded.output.stdout))):
        document = json.loads(recorded.output.stdout)
        holder(document, path)[path[-1]] = VALUES[number % len(VALUES)]
        survives(recorded, json.dumps(document))


@pytest.mark.parametrize("case", DOCUMENTS)
def test_interval_that_is_missing_or_repeated(case: str) -> None:
    recorded = network_golden(case)
    number = len(json.loads(recorded.output.stdout)["intervals"])
    for index in range(number):
        for edit in ("missing", "repeated"):
            document = json.loads(recorded.output.stdout)
            kept = document["intervals"][index]
            document["intervals"][index : index + 1] = [] if edit == "missing" else [kept, kept]
            check(recorded, json.dumps(document))


@pytest.mark.parametrize("case", DOCUMENTS)
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


@pytest.mark.parametrize("case", DOCUMENTS)
@given(data=st.data())
@settings(max_examples=30)
def test_fields_that_may_be_wrong_change_no_total(case: str, data: st.DataObject) -> None:
    recorded = network_golden(case)
    intact = json.dumps(json.loads(recorded.output.stdout))
    damage.check("iperf3", recorded.parse, intact, data.draw(damage.damaged(intact, damage.harmless("iperf3"))))
