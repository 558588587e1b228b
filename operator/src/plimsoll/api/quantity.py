"""Kubernetes quantities: `4Ki`, `20Gi`, `1M`, `512`.

Only whole, non-negative numbers of bytes make sense here, so fractions are accepted only where they are whole
bytes (`0.5Ki`) and `m` (milli) is refused. Source of the format: Kubernetes API reference, resource.Quantity.
"""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_SUFFIXES = _BINARY | _DECIMAL
_QUANTITY = re.compile(r"(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)(?P<suffix>[KMGTPE]i|[kMGTPE]|)")
_REMEDY = "write a Kubernetes quantity of whole bytes such as 4Ki, 20Gi or 4096"


def parse_quantity(value: object) -> int:
    """Return the bytes that a quantity stands for.

    Raises:
        ValueError: if `value` is no quantity, or not a whole number of bytes.

    """
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        message = f"is not a quantity; {_REMEDY}"
        raise ValueError(message)
    size = Decimal(match["number"]) * _SUFFIXES[match["suffix"]]
    if size != int(size):
        message = f"is not a whole number of bytes; {_REMEDY}"
        raise ValueError(message)
    return int(size)


def format_quantity(size: int) -> str:
    """Return the shortest exact binary quantity: 4096 -> `4Ki`, 1000 -> `1000`."""
    for suffix, factor in reversed(_BINARY.items()):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{suffix}"
    return str(size)


Size = Annotated[int, BeforeValidator(parse_quantity), PlainSerializer(format_quantity, return_type=str)]
