"""What an API server's rejections show about the constraints of a schema."""

import re
from collections.abc import Iterable

from support.apiserver import Answer
from support.schemas import Schema, refusable


def seen(answers: Iterable[Answer]) -> set[tuple[str, str]]:
    """Return field, without list indices and keys, and message of every rejection."""
    found = set()
    for answer in answers:
        for cause in answer.body.get("details", {}).get("causes", []):
            found.add((re.sub(r"\[\w+\]", "[]", cause["field"]), cause["message"]))
    return found


def unseen(schema: Schema, path: str, found: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the constraints without a violation."""
    return [
        (field, words)
        for field, words in refusable(schema, path)
        if not any(words in message and _same(field, where) for where, message in found)
    ]


def _same(field: str, where: str) -> bool:
    """Compare `spec.clients.nodeSelector{}` with `spec.clients.nodeSelector.disk`; a list may stand for its items."""
    pattern = re.escape(field).replace(r"\{\}", r"\.[^.\[]+")
    return re.fullmatch(pattern, where) is not None
