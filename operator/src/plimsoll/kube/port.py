"""The Kubernetes API as Plimsoll uses it: verbs on plain dictionaries, and its version.

Dictionaries rather than typed models: a model of an older version drops unknown fields when it writes an object back.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import msgspec

Object = Mapping[str, Any]
"""A Kubernetes object as JSON."""


Shape = type[msgspec.Struct]
"""The fields of an object that are read. The others are not decoded, so it does not matter how many there are."""

Keep = Callable[[Object], bool]
"""Which objects of a list are returned. It is asked page by page, so the others take no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object: `apiVersion` and `kind`."""

    api_version: str
    kind: str

    @classmethod
    def of(cls, obj: Object) -> Self:
        """Return the kind of an object."""
        return cls(api_version=obj["apiVersion"], kind=obj["kind"])


class Version(msgspec.Struct, frozen=True, kw_only=True, rename={"version": "resourceVersion"}):
    """A version of an object: the part of its metadata that identifies both."""

    uid: str
    namespace: str = ""
    name: str
    version: str

    @classmethod
    def of(cls, obj: Object) -> Self:
        """Return the version of an object."""
        return msgspec.convert(obj["metadata"], cls)


@dataclass(frozen=True, slots=True)
class Listed:
    """All existing objects."""

    versions: Sequence[Version]


@dataclass(frozen=True, slots=True)
class Changed:
    """An object was created or modified."""

    version: Version


@dataclass(frozen=True, slots=True)
class Gone:
    """An object was deleted."""

    version: Version


@dataclass(frozen=True, slots=True)
class Followed:
    """An object as it is now, or as it last was if it `is_gone`."""

    obj: Object
    is_gone: bool


class Kube(Protocol):
    """A connection to one API server. Errors are those of `plimsoll.kube.errors`.

    No answer takes more than some MiB: the pages of a list become smaller if their objects are large. `shape`: of each
    object only these fields are returned.
    """

    async def get(
        self, kind: Kind, name: str, namespace: str | None = None, *, shape: Shape | None = None
    ) -> Object | None:
        """Return an object; None if it does not exist."""

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        shape: Shape | None = None,
        keep: Keep | None = None,
    ) -> Sequence[Object]:
        """Return the objects with these labels and, for selectable fields, these values, as far as `keep` wants them.

        `namespace` None means all namespaces.
        """

    async def versions(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Version]:
        """Return the versions of the objects with these labels, which is cheaper than the objects."""

    def changes(self, kind: Kind, *, namespace: str | None = None) -> AsyncGenerator[Listed | Changed | Gone]:
        """Yield the existing objects, and then every change, until the API server ends the watch.

        A slow consumer delays later changes.
        """

    def follow(
        self, kind: Kind, shape: Shape, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Followed]:
        """Yield each existing object with these labels, and then every change, until the API server ends the watch.

        An object that is gone before the watch begins is not yielded.
        """

    def pages(
        self,
        kind: Kind,
        *,
        size: int,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        shape: Shape | None = None,
    ) -> AsyncIterator[Sequence[Object]]:
        """Yield the objects with these labels and fields in pages of at most `size`.

        An object may be yielded twice, in two versions.
        """

    async def create(self, obj: Object, *, dry_run: bool = False) -> bool:
        """Create an object without its status; false if one with that name exists, which is not changed.

        `dry_run`: the API server checks the object, refuses fields that it does not know, and does not store it.
        """

    async def patch(self, kind: Kind, name: str, namespace: str | None, patch: Object) -> Object:
        """Merge a patch (RFC 7386) into an object, except for its status."""

    async def patch_status(
        self, kind: Kind, name: str, namespace: str | None, status: Object, *, version: str | None = None
    ) -> Object:
        """Replace the given top-level fields of an object's status; a field that is None is removed.

        `version`: the resourceVersion that the object must still have.
        """

    async def delete(
        self, kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None, foreground: bool = False
    ) -> bool:
        """Delete an object, if given only with that UID; false if there is none.

        `foreground` keeps it until its dependents are gone.
        """

    async def version(self) -> str:
        """Return the API server's version: `v1.34.0`."""
