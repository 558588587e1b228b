"""Every file that a real kube-burner left, damaged (the same in every run).

The outcome is the true measurement, an error, or a measurement with a message.
"""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.measure.sample import Measurement
from plimsoll.tools.kube_burner import PODS_FILE, pods_text

from .damage import check, damaged, outcome
from .test_kube_burner import CLAIMS, PODS, SECOND, SUMMARY, golden, parse, with_files
from .test_kube_burner_pods import START, event, missed, pod

TOKENS = ["-1", "NaN", "1e999", "null", "[]", "{}", '"\\ud800"', "9" * 5000, "true", "0", "", "{", "}", "\n{", "\x00"]
every_file = pytest.mark.parametrize("name", [CLAIMS, PODS, SUMMARY])


def mutated(name: str, text: str) -> Measurement | None:
    return outcome(lambda damage: parse(with_files({name: damage})), text)


@every_file
def test_document_that_breaks_off_is_refused(name: str) -> None:
    whole = golden().files[name].rstrip()
    for end in range(len(whole)):
        assert mutated(name, whole[:end]) is None, whole[:end]


@every_file
def test_mutated_document_is_a_measurement_or_an_output_error(name: str) -> None:
    chance = random.Random(name)  # noqa: S311  # the same damage in every run
    for _ in range(500):
        text = golden().files[name]
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(text))
            text = text[:start] + chance.choice(TOKENS) + text[start + chance.randint(0, 12) :]
        mutated(name, text)


@pytest.mark.parametrize("name", [CLAIMS, PODS])
def test_a_document_that_is_missing_or_repeated_is_no_silent_number(name: str) -> None:
    documents = json.loads(golden().files[name])
    for number in range(len(documents)):
        for changed in (documents[:number] + documents[number + 1 :], [*documents, documents[number]]):
            found = mutated(name, json.dumps(changed))
            assert found is None or found.errors


@pytest.mark.parametrize("name", [CLAIMS, PODS, SUMMARY, PODS_FILE])
@given(data=st.data())
@settings(max_examples=settings().max_examples // 2)  # documents are large
def test_damaged_field_is_named_or_changes_no_number(name: str, data: st.DataObject) -> None:
    output = missed(4, pods_text([pod()], [event(START + 18 * SECOND)])) if name == PODS_FILE else golden()

    def read(text: str) -> Measurement:
        return parse(replace(output, files={**output.files, name: text}))

    intact = output.files[name]
    check("kubeBurner", read, intact, data.draw(damaged(intact)))
