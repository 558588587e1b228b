"""Sets of client numbers, written short: `0-7,12`. A list of a thousand numbers has no place in every trial."""

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

_RANGES = re.compile(r"(\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*)?")


def format_numbers(numbers: Iterable[int]) -> str:
    """Write numbers in ascending order as ranges; an empty set is an empty text."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_numbers(value: object) -> object:
    """Read what `format_numbers` writes; what is no text is left to the caller's own validation.

    Raises:
        ValueError: if a text is not of that form.

    """
    if not isinstance(value, str):
        return value
    if _RANGES.fullmatch(value) is None:
        message = "is not a set of numbers; write ascending numbers and ranges such as 0-7,12"
        raise ValueError(message)
    numbers: list[int] = []
    for part in filter(None, value.split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


ClientNumbers = Annotated[
    tuple[int, ...], BeforeValidator(parse_numbers), PlainSerializer(format_numbers, return_type=str)
]
