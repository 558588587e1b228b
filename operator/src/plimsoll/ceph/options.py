"""Options in Ceph's configuration database: how a run sets and restores them, and which values its OSDs should use."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from plimsoll.api.environment import CephOption
from plimsoll.api.model import Model
from plimsoll.ceph.document import parse_answer
from plimsoll.ceph.watch import OptionReading

OptionKey = tuple[str, str]  # in Ceph's configuration database: whose it is (`osd`, `osd.3`, `osd/class:hdd`), its name
Database = Mapping[OptionKey, str]

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)$")
_SIZE = re.compile(r"(0|[1-9][0-9]*)([KMGTPE]i?)?B?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDescription:
    """An option as `ceph config help` describes it."""

    name: str
    type: str  # of its value: `uint`, `int`, `str`, `float`, `bool`, `size`, `secs`, `millisecs`, and others
    choices: tuple[str, ...]  # permitted texts; empty if any is
    changes_at_runtime: bool  # whether running daemons apply a change


class RecordedOption(Model):
    """An option that a run sets, and its previous value."""

    who: str  # whose option it is, with the mask
    name: str
    value: str  # the run's value, as the database stores it
    previous: str | None = None  # the value before the run; None if there was none

    @property
    def key(self) -> OptionKey:
        return self.who, self.name


class RecordedOsd(Model):
    """An OSD that a run takes away for a while, and its previous reweight."""

    number: int
    action: Literal["Out", "Down"]
    reweight: float


class OptionRecord(Model):
    """What to restore. The options are stored before the first one is set; OSDs are added while they are away."""

    schema_version: Literal[1] = 1
    options: tuple[RecordedOption, ...] = ()
    osds: tuple[RecordedOsd, ...] = ()


Change = tuple[OptionKey, str | None]  # a change of the database: the option, and its new value; None removes it


def database_key(who: str, name: str) -> str:
    """Return the monitors' key of an option (ConfigMonitor.cc); `config get` does not tell values from defaults."""
    return f"config/{who}/{name}"


def parse_option_help(text: str) -> OptionDescription:
    """Read `ceph config help NAME`; ValueError with the field."""
    document = parse_answer(text)
    choices = document.get("enum_values")
    return OptionDescription(
        name=document["name"].text(),
        type=document["type"].text(),
        choices=tuple(choice.text() for choice in choices.elements()) if choices else (),
        changes_at_runtime=document["can_update_at_runtime"].flag(),
    )


def why_refused(option: CephOption, description: OptionDescription) -> str:
    """Return why a run cannot set an option, and what to do about it; empty if it can."""
    name = f"option {option.name}"
    if not description.changes_at_runtime:
        return f"{name} takes effect only after a restart of the OSDs; remove it from spec.storage.rook.config"
    if description.choices and option.value not in description.choices:
        return f"{name} cannot be {option.value}; choose one of {', '.join(description.choices)}"
    try:
        stored_value(option.value, description.type)
    except ValueError as error:
        return f"{name} cannot be {option.value}: {error}"
    return ""


def stored_value(text: str, kind: str) -> str:
    """Return a value of that type as the database stores it; ValueError with the remedy if it is none."""
    match kind:
        case "str" | "std::string":
            return text
        case "int" | "uint" | "secs" | "millisecs":
            if not _WHOLE.match(text):
                raise ValueError("write a whole number without a unit")
            return text
        case "size":
            match = _SIZE.match(text)
            if match is None:
                raise ValueError("write bytes, or a size such as 4Gi")
            number, suffix = match.groups()
            power = "KMGTPE".index(suffix[0]) + 1 if suffix else 0
            return str(int(number) * 1024**power)
        case "float":
            return f"{_number(text):.6f}"
        case "bool":
            if text not in {"true", "false"}:
                raise ValueError("write true or false")
            return text
        case _:
            raise ValueError(f"runs cannot set options of type {kind}")


def changes_of(record: OptionRecord, database: Database, *, restoring: bool = False) -> tuple[list[Change], list[str]]:
    """Return the changes that set the run's options, or restore them, and remarks on those that others changed."""
    changes: list[Change] = []
    remarks = []
    for option in record.options:
        present = database.get(option.key)
        is_set = _is_same(present, option.value)
        if not is_set and not _is_same(present, option.previous):
            now = f"is {present}" if present is not None else "was removed"
            before = option.previous if option.previous is not None else "unset"
            remarks.append(
                f"option {option.name} of {option.who} {now}, but this run changed it from {before} to {option.value}: "
                "somebody else has changed it since"
            )
        elif restoring or not is_set:
            # One with its previous value is restored once more: a command that was just killed may still be executed.
            changes.append((option.key, option.previous if restoring else option.value))
    return changes, remarks


def option_differences(
    options: Sequence[CephOption], database: Database, osds: Mapping[int, str], shown: Mapping[int, Mapping[str, str]]
) -> tuple[str, ...]:
    """Return where options differ from those that a run has set: in the database, and on OSDs.

    `osds` are the OSDs' device classes, `shown` what `ceph config show` prints of each of `expected_settings`.
    """
    differences = []
    for option in options:
        stored = database.get(option.key)
        if not _is_same(stored, option.value):
            present = f"{option.name} {'no value' if stored is None else stored}"
            where = f"the configuration database ({option.who})"
            differences.append(f"{where} has {present} instead of {option.value}")
    for number, settings in shown.items():
        for name, wanted in expected_settings(options, number, osds.get(number, "")).items():
            if not _is_same(settings[name], wanted):
                differences.append(f"osd.{number} has {name} {settings[name]} instead of {wanted}")
    return tuple(differences)


def reading_problems(reading: OptionReading) -> tuple[str, ...]:
    """Return why no trial may start: options that do not have the run's values, or that could not be read."""
    return (*differing_options(reading), *filter(None, (reading.problem,)))


def differing_options(reading: OptionReading) -> tuple[str, ...]:
    """Return which options do not have the run's values, and why that may be."""
    precedence = "an option of a single OSD takes precedence over an option of all OSDs, and its ceph.conf over both"
    return tuple(f"{difference}; {precedence}" for difference in reading.differences)


def expected_settings(options: Iterable[CephOption], osd: int, device_class: str) -> dict[str, str]:
    """Return what an OSD should use because of a run's options: name -> value."""
    ordered = sorted(options, key=lambda option: option.precedence)
    return {option.name: option.value for option in ordered if option.applies_to(osd, device_class)}


def _is_same(value: str | None, other: str | None) -> bool:
    """Whether two values are equal; Ceph does not always print a number in the same way."""
    if value == other or value is None or other is None:
        return value == other
    with suppress(ValueError):
        return _number(value) == _number(other)
    return False


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("write a finite number")
    return number
