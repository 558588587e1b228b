"""What Plimsoll asks of a Kubernetes API: verbs on plain dictionaries, and its version.

Dictionaries rather than typed models: a model of an older version drops the fields it does not know when an object is
written back.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Object = Mapping[str, Any]
"""A Kubernetes object as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object, as `apiVersion` and `kind` name it."""

    api_version: str
    kind: str

    @classmethod
    def of(cls, obj: Object) -> "Kind":
        """Return the kind of an object."""
        return cls(api_version=obj["apiVersion"], kind=obj["kind"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Which version of which object is there."""

    uid: str
    namespace: str
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Listed:
    """All objects that there are."""

    versions: Sequence[Version]


@dataclass(frozen=True, slots=True)
class Changed:
    """An object is new, or has another version."""

    version: Version


@dataclass(frozen=True, slots=True)
class Gone:
    """An object is there no more."""

    version: Version


class Kube(Protocol):
    """A connection to one API server. Errors are those of `plimsoll.kube.errors`."""

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return an object, or None if there is none."""
        ...

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Sequence[Object]:
        """Return the objects with these labels, and these values in fields that the API server can select by.

        `namespace` None means all namespaces.
        """
        ...

    async def versions(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Version]:
        """Return which versions of the objects with these labels are there: little of what is large."""
        ...

    def changes(self, kind: Kind, *, namespace: str | None = None) -> AsyncGenerator[Listed | Changed | Gone]:
        """Yield what is there, and then every change of it, until the API server ends that.

        Whoever takes a change late is told the next one late.
        """
        ...

    def pages(
        self, kind: Kind, *, size: int, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[Sequence[Object]]:
        """Yield the objects with these labels, `size` at a time: no more of them are in memory at once.

        An object may come twice, in two versions.
        """
        ...

    async def create(self, obj: Object) -> bool:
        """Create an object; false if one of that name exists, which is left as it is. Of a status nothing is kept."""
        ...

    async def patch(self, kind: Kind, name: str, namespace: str | None, patch: Object) -> Object:
        """Merge a patch (RFC 7386) into an object, its status left out."""
        ...

    async def patch_status(self, kind: Kind, name: str, namespace: str | None, status: Object) -> Object:
        """Replace the given top-level fields of an object's status, whole; a field that is None goes away."""
        ...

    async def delete(
        self, kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None, foreground: bool = False
    ) -> bool:
        """Delete an object, only if it has that UID where one is given; false if there is none.

        `foreground` keeps it until its dependants are gone.
        """
        ...

    async def version(self) -> str:
        """Return the API server's version, as `v1.34.0`."""
        ...
