"""Descriptions of models and of their fields, from docstrings and the texts below fields."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import dedent

from pydantic.fields import FieldInfo

from plimsoll.api.model import Model

_ATTRIBUTES = "\nAttributes:\n"
_ENTRY = re.compile(r"^ {4}(\w+): ", re.MULTILINE)


def summary(model: type[Model]) -> str:
    """Return the docstring of a model without its `Attributes:`, as one paragraph."""
    return _one_line(cleandoc(model.__doc__ or "").partition(_ATTRIBUTES)[0])


@cache
def attributes(model: type[Model]) -> dict[str, str]:
    """Return the texts below the fields of a model and its bases, or in `Attributes:`: field -> description."""
    found: dict[str, str] = {}
    for base in reversed([base for base in model.__mro__ if issubclass(base, Model)]):
        _, *parts = _ENTRY.split(cleandoc(base.__doc__ or "").partition(_ATTRIBUTES)[2])
        found |= {name: _one_line(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
        (definition,) = ast.parse(dedent(getsource(base))).body
        for field, text in pairwise(definition.body if isinstance(definition, ast.ClassDef) else ()):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(description))):
                    found[name] = _one_line(description)
    return found


def of_type(plain: object, notes: Iterable[object]) -> str:
    """Return the description of a type, from its annotation or the docstring of a model; empty without either."""
    annotated = [note.description for note in notes if isinstance(note, FieldInfo) and note.description]
    if annotated:
        return annotated[-1]
    return summary(plain) if isinstance(plain, type) and issubclass(plain, Model) else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
