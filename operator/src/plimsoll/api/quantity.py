"""Kubernetes quantities of whole bytes, such as `4Ki`, `1M`, `512` or `0.5Ki`; and latencies of whole microseconds."""

import re
from decimal import Decimal

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_QUANTITY = re.compile(r"(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)(?P<suffix>[KMGTPE]i|[kMGTPE]|)")
_SMALL = {"m": Decimal("1e-3"), "u": Decimal("1e-6"), "n": Decimal("1e-9")}
_AMOUNT = re.compile(r"(?P<number>-?[0-9]{1,18}(?:\.[0-9]{1,9})?(?:[eE][0-9]{1,2})?)(?P<suffix>[KMGTPE]i|[numkMGTPE]|)")
QUANTITY_PATTERN = r"^[0-9]{1,18}(\.[0-9]{1,9})?([KMGTPE]i|[kMGTPE])?$"  # `size_rules` bound it
LATENCY_PATTERN = r"^([0-9]{1,8}us|[0-9]{1,5}(\.[0-9]{1,3})?ms|[0-9]{1,2}(\.[0-9]{1,6})?s)$"
LATENCY_RANGE = "must be whole microseconds from 1us to 10s, such as 500us, 2.5ms or 1s"

_LATENCY = re.compile(LATENCY_PATTERN)
_MICROSECONDS = {"us": 1, "ms": 10**3, "s": 10**6}  # in this order, because `ms` ends with `s`
_MAX_LATENCY = 10 * _MICROSECONDS["s"]
_REMEDY = "write a Kubernetes quantity of whole bytes such as 4Ki, 20Gi or 4096"


def parse_quantity(value: object) -> int:
    """Return a quantity in bytes; ValueError if it is not a quantity, or not a whole number of bytes."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"is not a quantity; {_REMEDY}")
    size = Decimal(match["number"]) * (_BINARY | _DECIMAL)[match["suffix"]]
    if size != int(size):
        raise ValueError(f"is not a whole number of bytes; {_REMEDY}")
    return int(size)


def parse_amount(value: object) -> Decimal:
    """Return a quantity of any resource as the API server writes it, such as `100m` CPUs or `1e3`; else ValueError."""
    match = _AMOUNT.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{str(value)[:40]!r} is not a quantity")
    return Decimal(match["number"]) * (_BINARY | _DECIMAL | _SMALL).get(match["suffix"], 1)


def format_quantity(size: int) -> str:
    """Return the shortest exact binary quantity: 4096 -> `4Ki`, 1000 -> `1000`."""
    for suffix, factor in reversed(_BINARY.items()):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{suffix}"
    return str(size)


def parse_latency(value: object) -> int:
    """Return a latency in microseconds; ValueError if it has no unit, or is out of range."""
    if isinstance(value, str) and _LATENCY.fullmatch(value):
        unit = next(unit for unit in _MICROSECONDS if value.endswith(unit))
        microseconds = int(Decimal(value.removesuffix(unit)) * _MICROSECONDS[unit])
        if 1 <= microseconds <= _MAX_LATENCY:
            return microseconds
    raise ValueError(LATENCY_RANGE)


def normal_latency(value: object) -> str:
    """Return a latency in the largest unit that leaves a number of 1 or more: `1250us` -> `1.25ms`."""
    microseconds = parse_latency(value)
    unit, size = next((unit, size) for unit, size in reversed(_MICROSECONDS.items()) if microseconds >= size)
    return f"{microseconds / size:.10g}{unit}"
