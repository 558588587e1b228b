"""Every recorded line of bonnie++, damaged in every way that a parser can notice (the same in every run).

The outcome is the true measurement, or an error: a line has no place for a warning.
"""

from collections.abc import Iterator

import pytest

from plimsoll.measure.sample import Measurement

from .damage import noisy, outcome
from .test_bonnie import RECORDED, golden, parsed

every_case = pytest.mark.parametrize("case", RECORDED)


def reparsed(case: str, stdout: str) -> Measurement | None:
    return outcome(lambda text: parsed(case, lambda _: text), stdout)


def damaged_columns(line: str) -> Iterator[str]:
    """Yield the line without each column, with each twice, and with each empty although it is not."""
    columns = line.rstrip("\n").split(",")
    for number, column in enumerate(columns):
        yield ",".join([*columns[:number], *columns[number + 1 :]]) + "\n"
        yield ",".join([*columns[:number], column, *columns[number:]]) + "\n"


@every_case
def test_columns_that_are_missing_or_repeated(case: str) -> None:
    for damaged in damaged_columns(golden(case).stdout):
        assert reparsed(case, damaged) is None, damaged


@every_case
def test_line_that_breaks_off(case: str) -> None:
    whole = golden(case).stdout.rstrip("\n")
    for end in range(len(whole) + 1):
        assert reparsed(case, whole[:end]) is None, whole[:end]
        # Even if the rest of the line is lost and its end is not.
        assert end == len(whole) or reparsed(case, f"{whole[:end]}\n") is None


@every_case
def test_columns_that_became_empty(case: str) -> None:
    columns = golden(case).stdout.rstrip("\n").split(",")
    for number, column in enumerate(columns):
        found = reparsed(case, ",".join([*columns[:number], "", *columns[number + 1 :]]) + "\n")
        assert not column or found is None, (number, column)


def rates(measurement: Measurement) -> object:
    return measurement.untimed, [
        (sample.operation, sample.ios, sample.bytes, sample.runtime) for sample in measurement.operations
    ]


@every_case
def test_output_with_noise(case: str) -> None:
    for damaged in noisy(case, golden(case).stdout, 300):
        reparsed(case, damaged)


@every_case
@pytest.mark.parametrize("token", ["9" * 400, "1e308", "-1", "nan", "0", "++++", "++++++", "x\ud800", "1us", "٣"])
def test_column_that_became_another(case: str, token: str) -> None:
    truth = parsed(case)
    columns = golden(case).stdout.rstrip("\n").split(",")
    for number, column in enumerate(columns):
        found = reparsed(case, ",".join([*columns[:number], token, *columns[number + 1 :]]) + "\n")
        if found is not None and column != token:
            # CPU time may be 0, and the longest operation any time; no rate is lost or invented.
            assert rates(found) == rates(truth), (number, column)
