"""A single published value."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """Units as published; the studies do not always say which power of a thousand they mean."""

    MEGABYTES_PER_SECOND = "MB/s"
    GIGABYTES_PER_SECOND = "GB/s"
    KIBIBYTES_PER_SECOND = "KiB/s"
    MEBIBYTES_PER_SECOND = "MiB/s"
    MEGABITS_PER_SECOND = "Mbit/s"
    GIGABITS_PER_SECOND = "Gbit/s"
    MICROSECONDS = "µs"
    MILLISECONDS = "ms"
    SECONDS = "s"
    PERCENT = "%"
    RATIO = "1"
    COUNT = "count"
    KIBIBYTES = "KiB"
    MEBIBYTES = "MiB"
    GIBIBYTES = "GiB"
    NOT_STATED = "not stated"


class Origin(StrEnum):
    """Where a value comes from."""

    PUBLISHED = "Published"
    DERIVED = "Derived"
    CITED = "Cited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One value of a study.

    Attributes:
        experiment: id of the experiment.
        place: table, figure or text that published it.
        quantity: what was measured, such as throughput.
        unit: as published.
        conditions: parameter -> value.
        note: how to read it; empty if it needs no remark.

    """

    experiment: str
    place: str
    quantity: str
    unit: Unit
    value: float
    origin: Origin
    conditions: Mapping[str, str | int]
    note: str = ""

    @property
    def key(self) -> tuple[str, str, str, frozenset[tuple[str, str | int]]]:
        """What identifies it: no study has two values of the same experiment, place, quantity and conditions."""
        return self.experiment, self.place, self.quantity, frozenset(self.conditions.items())
