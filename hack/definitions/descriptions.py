"""Descriptions of models and of their fields, from docstrings and the texts below fields."""

import ast
from collections.abc import Iterable
from functools import cache
from inspect import getsource
from itertools import pairwise
from textwrap import dedent

from pydantic.fields import FieldInfo

from plimsoll.api.model import Model


def summary(model: type[Model]) -> str:
    """Return the docstring of a model as one paragraph."""
    return _one_line(model.__doc__ or "")


@cache
def attributes(model: type[Model]) -> dict[str, str]:
    """Return the texts below the fields of a model and its bases: field -> description."""
    found: dict[str, str] = {}
    for base in reversed([base for base in model.__mro__ if issubclass(base, Model)]):
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
