"""Sets of client numbers as short text, `0-7,12`, because every trial has one and it may have a thousand numbers."""

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from plimsoll.api.schema import ServerOnly

_RANGES = re.compile(r"(\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*)?")


def format_numbers(numbers: Iterable[int]) -> str:
    """Return numbers as ascending ranges; an empty set is an empty text."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_numbers(value: object) -> object:
    """Return the numbers of a text by `format_numbers`; other values are returned for the caller's validation.

    Raises:
        ValueError: if a text has another form.

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


_WRITTEN = ServerOnly(shape=str, max_length=8192, pattern=r"^([0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*)?$")

ClientNumbers = Annotated[
    tuple[int, ...], BeforeValidator(parse_numbers), PlainSerializer(format_numbers, return_type=str), _WRITTEN
]
