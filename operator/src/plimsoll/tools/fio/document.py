"""fio's JSON: finding it between other text, and reading it without guessing."""

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.tools.base import OutputError

MAX_COUNT = 2**63 - 1
MAX_MILLISECONDS = 10**13
"""The year 2286, as a time; 300 years, as a duration."""

_SHOWN_CHARACTERS = 300
_NOISE_CHARACTERS = 4000
_NOISE_LINES = 20
# A measurement prints one. Only so many, the last ones, are looked at.
_MAX_DOCUMENTS = 100


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a text holds.

    Attributes:
        root: the last complete document.
        noise: lines outside of documents, shortened; at most 20 from any one place.
        warnings: what is odd about the documents.

    """

    root: Node
    noise: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The text from one brace at the start of a line to the next, decoded as far as it goes."""

    fields: Mapping[str, object] | None
    problem: str
    duplicates: tuple[str, ...]
    rest: str


def shown(value: object) -> str:
    """Return a value as a short line that every terminal and document can hold."""
    if not isinstance(value, str):
        value = "a list or an object" if isinstance(value, list | dict) else f"{value}"[:_SHOWN_CHARACTERS]
    return "".join(letter if letter.isprintable() else "?" for letter in value[:_SHOWN_CHARACTERS])


def lines(text: str) -> list[str]:
    """Return the first lines of a text that say something."""
    stripped = (shown(line.strip()) for line in text[:_NOISE_CHARACTERS].splitlines())
    return [line for line in stripped if line][:_NOISE_LINES]


def read_document(text: str) -> Found:
    """Read the last complete document of a text that may hold other lines and other documents.

    fio indents everything inside a document, so a brace at the start of a line begins one. Reading each only up to the
    next such brace keeps the effort proportional to the text whatever it holds.

    Raises:
        OutputError: there is no complete document; it says where the last one breaks off.

    """
    starts = deque((match.start() for match in re.finditer(r"^\{", text, re.MULTILINE)), maxlen=_MAX_DOCUMENTS)
    if not starts:
        begin = "; ".join(lines(text)[:3])
        raise OutputError(f"no JSON document in the output: {begin or 'it is empty'}")
    parts = [_decode(text, start, end) for start, end in pairwise([*starts, len(text)])]
    complete = [part for part in parts if part.fields is not None]
    if not complete:
        raise OutputError(parts[-1].problem)
    before = lines(text[: starts[0]][:_NOISE_CHARACTERS])
    return Found(
        root=Node(path="", fields=complete[-1].fields or {}),
        noise=(*before, *(line for part in parts for line in lines(part.rest))),
        warnings=tuple(_oddities(parts, len(complete))),
    )


def _oddities(parts: list[_Part], complete: int) -> Iterator[str]:
    yield from (part.problem for part in parts if part.problem)
    if complete > 1:
        yield f"{complete} documents in the output; the last one was taken"
    for part in parts:
        if part.duplicates:
            yield f"fields that occur twice in one object, of which the last was taken: {', '.join(part.duplicates)}"


def _decode(text: str, start: int, end: int) -> _Part:
    duplicates: list[str] = []
    decoder = json.JSONDecoder(object_pairs_hook=_object_reporting(duplicates))
    part = text[start:end]
    try:
        fields, used = decoder.raw_decode(part)
    except json.JSONDecodeError as error:
        return _broken(text, start + error.pos, error.msg)
    except (ValueError, RecursionError) as error:
        return _broken(text, start, type(error).__name__)
    return _Part(fields=fields, problem="", duplicates=tuple(sorted(set(duplicates))), rest=part[used:])


def _broken(text: str, position: int, reason: str) -> _Part:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    problem = f"a JSON document breaks off at line {line}, column {column}: {reason}"
    return _Part(fields=None, problem=problem, duplicates=(), rest="")


def _object_reporting(duplicates: list[str]) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    """Return a hook for objects that adds the names that occur twice to `duplicates`."""

    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            duplicates.extend(shown(name) for name, count in counts.items() if count > 1)
        return fields

    return build
