"""Options of Ceph's configuration database that a run sets while it measures."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, Field

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Model

MAX_OPTIONS = 16

WHO_PATTERN = r"^osd(\.(0|[1-9][0-9]{0,5})|/class:[a-z0-9]([-_a-z0-9]*[a-z0-9])?)?$"
"""All OSDs, one OSD, or those of a device class. Options of other daemons would affect more than the storage."""

OPTION_NAME_PATTERN = r"^[a-z][a-z0-9_]*$"
_VALUE_PATTERN = r"^(-[0-9]|[!-,.-~])([ -~]*[!-~])?$"
"""Printable, without spaces around it; only a number may be negative."""

SET_ONCE = "set each option of the same OSDs once"

_CLASS_MARK = "/class:"


class CephOption(Model):
    """An option of the OSDs in the cluster's configuration database.

    Attributes:
        who: The OSDs, as in "ceph config set": osd for all, osd.3 for one, osd/class:hdd for those of a device class.
            An option of one OSD takes precedence over that of its class, and this over that of all.
        name: Name of the option, such as osd_mclock_profile. The administrator decides which ones runs may set. One
            that takes effect only after a restart of the OSDs is refused.
        value: Value, as in "ceph config set".

    """

    who: Annotated[str, Field(pattern=WHO_PATTERN, max_length=63)]
    name: Annotated[str, Field(pattern=OPTION_NAME_PATTERN, max_length=100)]
    value: Annotated[str, Field(pattern=_VALUE_PATTERN, max_length=256)]

    @property
    def key(self) -> tuple[str, str]:
        """What identifies it: whose option it is, and its name."""
        return self.who, self.name

    @property
    def precedence(self) -> int:
        """Which of several options with the same name an OSD uses: the one with the highest number."""
        return 2 if self.who.startswith("osd.") else int(_CLASS_MARK in self.who)

    def applies_to(self, osd: int, device_class: str) -> bool:
        """Whether it is an option of this OSD."""
        _, mark, wanted = self.who.partition(_CLASS_MARK)
        return wanted == device_class if mark else self.who in {"osd", f"osd.{osd}"}


def by_osds(options: Iterable[CephOption]) -> dict[str, dict[str, str]]:
    """Return options by whose they are: `osd` -> name -> value."""
    found: dict[str, dict[str, str]] = {}
    for option in options:
        found.setdefault(option.who, {})[option.name] = option.value
    return found


def _distinct(options: tuple[CephOption, ...]) -> tuple[CephOption, ...]:
    keys = [option.key for option in options]
    problems = [
        Problem(
            field=f"[{number}]",
            value=f"{who} {name}",
            remedy=f"is already set by config[{keys.index((who, name))}]; {SET_ONCE}",
        )
        for number, (who, name) in enumerate(keys)
        if keys.index((who, name)) != number
    ]
    if problems:
        raise SpecError(problems)
    return options


CephOptions = Annotated[tuple[CephOption, ...], Field(max_length=MAX_OPTIONS), AfterValidator(_distinct)]
"""Each option of the same OSDs is set once."""
