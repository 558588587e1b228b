"""How lists and parameters are written in the sentences and reasons of hypotheses."""

from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from plimsoll.measure.wording import first_few

_NAMED = 8


def listed(texts: Sequence[str], last: Literal["and", "or"] = "and") -> str:
    """Return `a`, `a and b`, or `a, b and c`; the first few of many."""
    if len(texts) > _NAMED:
        return first_few(texts, _NAMED)
    return f" {last} ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def parameter_text(value: JsonValue) -> str:
    """Return a value of a parameter as a workload writes it; `none` for the default of an absent one."""
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)
