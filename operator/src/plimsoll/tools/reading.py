"""What all parsers share: reading fields without guessing, and showing what was not understood."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from plimsoll.tools.base import OutputError

MAX_COUNT = 2**63 - 1
MAX_MESSAGES = 50
"""Of errors and of warnings; a broken device says the same thing very often."""
NOISE_CHARACTERS = 4000
"""Of a text, as many as a person would look through."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SHOWN_CHARACTERS = 300
_NOISE_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An object in a document; `path` is where it stands, as in `jobs[0].read.lat_ns`."""

    path: str
    fields: Mapping[str, object]

    def child(self, name: str) -> "Node":
        """Return the object that a field holds.

        Raises:
            OutputError: it is missing, or is no object.

        """
        return self._as_node(self._value(name), name)

    def children(self, name: str) -> "list[Node]":
        """Return the objects of a list.

        Raises:
            OutputError: it is missing, or is no list of objects.

        """
        values = self._value(name)
        if not isinstance(values, list):
            raise self._error(name, "is not a list")
        return [self._as_node(value, f"{name}[{index}]") for index, value in enumerate(values)]

    def count(self, name: str, *, at_most: int = MAX_COUNT) -> int:
        """Return a whole number that is not negative.

        Raises:
            OutputError: it is missing, or something else.

        """
        value = self._value(name)
        # A boolean is an int to Python, so the type itself is compared.
        if type(value) is not int or not 0 <= value <= at_most:
            raise self._error(name, f"is not a whole number from 0 to {at_most}: {shown(value)}")
        return value

    def number(self, name: str) -> float:
        """Return a finite number that is not negative.

        Raises:
            OutputError: it is missing, or something else.

        """
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
            raise self._error(name, f"is not a number from 0 to {MAX_COUNT}: {shown(value)}")
        return float(value)

    def text(self, name: str) -> str:
        """Return a text, without anything that cannot be printed.

        Raises:
            OutputError: it is missing, or no text.

        """
        value = self._value(name)
        if not isinstance(value, str):
            raise self._error(name, f"is not a text: {shown(value)}")
        return shown(value)

    def unknown(self, known: frozenset[str]) -> Iterator[str]:
        """Yield the paths of the fields that are not known."""
        return (self._place(shown(name)) for name in self.fields if name not in known)

    def _value(self, name: str) -> object:
        if name not in self.fields:
            raise self._error(name, "is missing")
        return self.fields[name]

    def _as_node(self, value: object, name: str) -> "Node":
        if not isinstance(value, dict):
            raise self._error(name, "is not an object")
        return Node(path=self._place(name), fields=value)

    def _place(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _error(self, name: str, what: str) -> OutputError:
        return OutputError(f"{self._place(name)} {what}")


def shown(value: object) -> str:
    """Return a value as a short line that every terminal and document can hold."""
    if not isinstance(value, str):
        value = "a list or an object" if isinstance(value, list | dict) else f"{value}"[:_SHOWN_CHARACTERS]
    return "".join(letter if letter.isprintable() else "?" for letter in value[:_SHOWN_CHARACTERS])


def lines(text: str) -> list[str]:
    """Return the first lines of a text that say something."""
    stripped = (shown(line.strip()) for line in text[:NOISE_CHARACTERS].splitlines())
    return [line for line in stripped if line][:_NOISE_LINES]


def moment(stamp: str) -> int:
    """Return the Unix nanoseconds of a time as Ceph prints it, `2026-11-21T17:04:36.017824+0000`.

    Raises:
        OutputError: it is none.

    """
    try:
        return (datetime.fromisoformat(stamp) - _EPOCH) // _MICROSECOND * 1000
    except (ValueError, OverflowError, TypeError) as error:
        raise OutputError(f"{shown(stamp)} is not a time") from error


def whole_lines(text: str) -> list[str]:
    """Return the lines of what a program printed, without empty ones and without spaces at their ends.

    Raises:
        OutputError: the last one is not ended.

    """
    if text and not text.endswith("\n"):
        raise OutputError(f"the output breaks off in the line: {shown(text.splitlines()[-1])}")
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def bounded(messages: Sequence[str]) -> tuple[str, ...]:
    """Return the messages, each once, and no more than a person would read."""
    different = list(dict.fromkeys(message[:NOISE_CHARACTERS] for message in messages))
    more = len(different) - MAX_MESSAGES
    return (*different[:MAX_MESSAGES], f"and {more} more") if more > 0 else tuple(different)
