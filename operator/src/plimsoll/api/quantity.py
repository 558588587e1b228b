"""Kubernetes quantities: `4Ki`, `20Gi`, `1M`, `512`.

Quantities are whole, non-negative numbers of bytes: fractions must be whole bytes (`0.5Ki`), and `m` (milli) is an
error. Source of the format: Kubernetes API reference, resource.Quantity.
"""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from plimsoll.api.model import Rule, ServerOnly

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_QUANTITY = re.compile(r"(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)(?P<suffix>[KMGTPE]i|[kMGTPE]|)")
QUANTITY_PATTERN = r"^[0-9]{1,18}(\.[0-9]{1,9})?([KMGTPE]i|[kMGTPE])?$"
"""A quantity in any form that the API server accepts; `size_rules` bound it."""

_REMEDY = "write a Kubernetes quantity of whole bytes such as 4Ki, 20Gi or 4096"


def parse_quantity(value: object) -> int:
    """Return a quantity in bytes; ValueError if it is no quantity, or not a whole number of bytes."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"is not a quantity; {_REMEDY}")
    size = Decimal(match["number"]) * (_BINARY | _DECIMAL)[match["suffix"]]
    if size != int(size):
        raise ValueError(f"is not a whole number of bytes; {_REMEDY}")
    return int(size)


def format_quantity(size: int) -> str:
    """Return the shortest exact binary quantity: 4096 -> `4Ki`, 1000 -> `1000`."""
    for suffix, factor in reversed(_BINARY.items()):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{suffix}"
    return str(size)


def size_rules(low: int, high: int) -> tuple[Rule, ...]:
    """Return rules for the bounds of a quantity, because the API server cannot compare text with a minimum.

    They do not work in a list: the API server assumes that text in a list may be as long as a request, and rejects the
    cost of a function on it. Patterns bound the sizes in lists.
    """
    least, most = format_quantity(low), format_quantity(high)
    in_bounds = Rule(
        rule=(
            f"type(self) == int ? self >= {low} && self <= {high} : "
            f"quantity(self).compareTo(quantity('{least}')) >= 0 && quantity(self).compareTo(quantity('{most}')) <= 0"
        ),
        message=f"must be from {least} to {most}",
    )
    whole = Rule(
        rule=(
            f"type(self) == int || quantity(self).compareTo(quantity('{most}')) > 0 || "
            "[quantity(self).asApproximateFloat()].all(bytes, "
            "bytes - double(int(bytes + 0.5)) <= bytes * 1e-15 && double(int(bytes + 0.5)) - bytes <= bytes * 1e-15)"
        ),
        message="must be a whole number of bytes",
    )
    return in_bounds, whole


Size = Annotated[
    int,
    BeforeValidator(parse_quantity),
    PlainSerializer(format_quantity, return_type=str),
    ServerOnly(int_or_string=True, max_length=32, pattern=QUANTITY_PATTERN),
]

BlockSize = Annotated[Size, ServerOnly(pattern=r"^([1-9][0-9]{0,3}Ki|([1-9]|[1-5][0-9]|6[0-4])Mi)$")]
"""A size of at most 64Mi; the API server accepts bytes, whole Ki and whole Mi."""
