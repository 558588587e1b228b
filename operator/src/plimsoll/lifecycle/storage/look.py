"""How a provider observes a run's objects outside its namespace, without doing I/O itself.

A look is a generator: it yields queries, receives their answers, and returns what it found.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from plimsoll.lifecycle.children import Object

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query for the object with a name, or for all objects with these labels and fields.

    Attributes:
        namespace: empty for all namespaces, and for a cluster-scoped kind.
        name: empty for all names.

    """

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)


Answers: TypeAlias = Sequence[Sequence[Object]]
"""The objects found, query by query."""

Look: TypeAlias = Generator[Sequence[Query], Answers, Found]
"""A look yields batches of queries. The queries of one batch are sent concurrently."""


class UnansweredError(Exception):
    """A query without an answer. A look that can do without it catches this; `reason` is for people.

    `is_forbidden`: the operator lacks a permission. Otherwise the API server does not know the kind.
    """

    def __init__(self, reason: str, *, is_forbidden: bool) -> None:
        """Record why."""
        self.reason = reason
        self.is_forbidden = is_forbidden
        super().__init__(reason)
