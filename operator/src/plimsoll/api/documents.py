"""Reads whole documents: plain JSON values, or the text of a manifest, as a model."""

from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from plimsoll.api.errors import Problem, SpecError, problems_of
from plimsoll.api.names import API_VERSION, RESULT_KIND, RUN_KIND, SUITE_KIND
from plimsoll.api.wording import shown

M = TypeVar("M", bound=BaseModel)

_KINDS = (RUN_KIND, RESULT_KIND, SUITE_KIND)


def decode_document(document: JsonValue, model: type[M], kind: str) -> M:
    """Read plain JSON values as a model of that kind.

    Raises:
        SpecError: with every invalid field, its value and the remedy.

    """
    if not isinstance(document, dict):
        what = "is empty" if document is None else "is not a mapping"
        raise SpecError([Problem(field="", remedy=f"{what}; write one {kind} of {API_VERSION}")])
    found = document.get("kind")
    if found in _KINDS and found != kind:
        # Nothing else in it is of interest.
        raise SpecError([Problem(field="kind", value=shown(found), remedy=f"must be {kind}")])
    try:
        # By alias only: the API server does not know `settle_seconds`.
        return model.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, model=model)) from error


def load_document(text: str, model: type[M], kind: str) -> M:
    """Read YAML or JSON text as a model of that kind.

    Raises:
        SpecError: with every invalid field, its value and the remedy.

    """
    # Only here: agents and conductors read no manifest, and do without YAML.
    from plimsoll.api.manifest import read_manifest  # noqa: PLC0415

    return decode_document(read_manifest(text), model, kind)
