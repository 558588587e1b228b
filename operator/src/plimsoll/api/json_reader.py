"""Reading JSON that other programs print: errors name the path of a field, and unknown fields are ignored."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self
from unicodedata import category

MAX_COUNT = 2**63 - 1
_MAX_IDENTIFIER = 2**64 - 1

_QUOTED_CHARACTERS = 300
_ONE_LINE = {ord("\n"): "?", ord("\t"): "?"}
_CONTRADICTION = object()  # the value of a field that an object holds several times, with different values


class OutputError(ValueError):
    """The output of a program cannot be read; the message names the field or line."""


def printable(value: object) -> str:
    """Return a value as one short line without unprintable characters."""
    if not isinstance(value, str):
        value = "a list or an object" if isinstance(value, list | dict) else f"{value}"[:_QUOTED_CHARACTERS]
    return printable_text(value[:_QUOTED_CHARACTERS].translate(_ONE_LINE))


def printable_text(text: str) -> str:
    """Return a text with `?` for each character that Unicode does not call graphic; line feeds and tabs remain."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.isprintable():
            lines[number] = "".join(
                letter if letter.isprintable() or letter == "\t" or category(letter) == "Zs" else "?" for letter in line
            )
    return "\n".join(lines)


def _build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        fields = {}
        for name, value in pairs:
            fields[name] = value if fields.get(name, value) == value else _CONTRADICTION
    return fields


_STRING_OR_NOT_FINITE = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|(?<![\w.])-?(?:inf|nan)(?![\w.])', re.DOTALL)
"""A string as a whole, or a number that is not finite, as C and C++ print it."""


def _spell_not_finite(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else "NaN".rjust(len(match[0]))


class _Decoder(json.JSONDecoder):
    """Decodes documents in which a number may be `inf`, `-inf`, `nan` or `-nan`: it becomes NaN."""

    def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
        try:
            return super().raw_decode(s, idx)
        except json.JSONDecodeError:
            # The length does not change, so positions in errors remain true.
            return super().raw_decode(s[:idx] + _STRING_OR_NOT_FINITE.sub(_spell_not_finite, s[idx:]), idx)


DECODER = _Decoder(object_pairs_hook=_build_object)  # for `JsonNode`


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value in a document, and its path, such as `jobs[0].read.lat_ns`.

    Every method raises OutputError, with the path, if the value has another type, if a required field is missing, or if
    an object holds a field that is read several times, with different values.
    """

    value: object
    path: str = ""
    document: str = ""  # what the document is, for messages; empty if the path is enough

    @classmethod
    def parse(cls, text: str, *, path: str = "", document: str = "") -> Self:
        """Parse a document, which a program may have printed several times."""
        try:
            value, end = DECODER.raw_decode(text := text.strip())
            while end < len(text):
                repeated, length = DECODER.raw_decode(rest := text[end:].lstrip())
                if repeated != value:
                    raise ValueError("several documents that differ")  # noqa: TRY301 - handled like no JSON
                end = len(text) - len(rest) + length
            return cls(value, path, document)
        except (ValueError, RecursionError) as error:
            begin = printable(text[:40])
            raise cls(None, path, document).error(f"is not JSON: {printable(str(error))}: {begin!r}") from error

    def __getitem__(self, name: str) -> "JsonNode":
        """Return a field of an object; it is an error if it is absent."""
        fields = self._fields()
        child = JsonNode(fields.get(name), f"{self.path}.{printable(name)}".removeprefix("."), self.document)
        if name not in fields:
            raise child.error("is missing")
        if child.value is _CONTRADICTION:
            raise child.error("occurs twice with different values")
        return child

    def __contains__(self, name: str) -> bool:
        return name in self._fields()

    def get(self, name: str) -> "JsonNode | None":
        return self[name] if self._fields().get(name) is not None else None

    def items(self) -> Iterator[tuple[str, "JsonNode"]]:
        for name in self._fields():
            yield name, self[name]

    def elements(self) -> "list[JsonNode]":
        if not isinstance(self.value, list):
            raise self.error("is not a list")
        return [JsonNode(value, f"{self.path}[{index}]", self.document) for index, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self._not("a string")
        return self.value

    def line(self) -> str:
        """Return a string as one short line without unprintable characters."""
        return printable(self.text())

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self._not("true or false")
        return self.value

    def integer(self) -> int:
        # A boolean is an int to Python, so the type itself is compared.
        if type(self.value) is not int or abs(self.value) > MAX_COUNT:
            raise self._not("a whole number")
        return self.value

    def count(self, *, at_most: int = MAX_COUNT) -> int:
        """Return a whole number that is not negative."""
        if type(self.value) is not int or not 0 <= self.value <= at_most:
            raise self._not(f"a whole number from 0 to {at_most}")
        return self.value

    def number(self, *, at_most: int = MAX_COUNT) -> float:
        """Return a finite number that is not negative."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not 0 <= self.value <= at_most:
            raise self._not(f"a number from 0 to {at_most}")
        return float(self.value)

    def number_or_none(self, *names: str) -> float | None:
        """Return a field, or a field of a field, as by `number`; None if it is absent or anything else, such as NaN."""
        try:
            return reduce(JsonNode.__getitem__, names, self).number()
        except OutputError:
            return None

    def value_or_none(self, name: str) -> object:
        """Return the value of a field, of any type; None if it is absent, or occurs twice with different values."""
        try:
            return self[name].value
        except OutputError:
            return None

    def identifier(self) -> int:
        """Return a whole number that names something: 64 bits without a sign."""
        return self.count(at_most=_MAX_IDENTIFIER)

    def unquoted(self) -> "JsonNode":
        """Return the number that a string holds, as a number; any other value as it is."""
        if not isinstance(self.value, str):
            return self
        try:
            number = json.loads(self.value)
        except (ValueError, RecursionError):
            return self
        return JsonNode(number if isinstance(number, int | float) else self.value, self.path, self.document)

    def error(self, problem: str) -> OutputError:
        """Return an error about the value; `problem` follows its path."""
        if self.document:
            return OutputError(f"{self.document}: {self.path} {problem}" if self.path else f"{self.document} {problem}")
        return OutputError(f"{self.path or 'the document'} {problem}")

    def _not(self, expected: str) -> OutputError:
        return self.error(f"is not {expected}: {printable(self.value)}")

    def _fields(self) -> dict[str, object]:
        if not isinstance(self.value, dict):
            raise self.error("is not an object")
        return self.value
