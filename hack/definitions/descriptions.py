"""Descriptions of models and of their fields, from docstrings."""

import re
from collections.abc import Iterable
from inspect import cleandoc

from pydantic.fields import FieldInfo

from plimsoll.api.model import Model

_ATTRIBUTES = "\nAttributes:\n"
_ENTRY = re.compile(r"^ {4}(\w+): ", re.MULTILINE)


def summary(model: type[Model]) -> str:
    """Return the docstring of a model without its `Attributes:`, as one paragraph."""
    return _one_line(_docstring(model).partition(_ATTRIBUTES)[0])


def attributes(model: type[Model]) -> dict[str, str]:
    """Return the entries of `Attributes:` of a model and its bases: field -> description."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        _, *parts = _ENTRY.split(_docstring(base).partition(_ATTRIBUTES)[2])
        found |= {name: _one_line(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    return found


def of_type(plain: object, notes: Iterable[object]) -> str:
    """Return the description of a type, from its annotation or the docstring of a model; empty without either."""
    annotated = [note.description for note in notes if isinstance(note, FieldInfo) and note.description]
    if annotated:
        return annotated[-1]
    return summary(plain) if isinstance(plain, type) and issubclass(plain, Model) else ""


def _docstring(model: type) -> str:
    return cleandoc(model.__doc__ or "")


def _one_line(text: str) -> str:
    return " ".join(text.split())
