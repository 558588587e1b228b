"""Actions, as data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.api.reasons.entry import Severity
from plimsoll.lifecycle.children import Child

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an object; keep one that exists."""

    obj: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSecret:
    """Create the session secret with new keys and the metadata of `obj`; keep one that exists.

    Attributes:
        clients: how many clients get their own token; None for one token for all.

    """

    obj: Object
    clients: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyKeyring:
    """Create a Secret with a CephX user's keyring and the metadata of `obj`; keep one that exists.

    The action contains no key: whoever performs it reads the key from another Secret.

    Attributes:
        user: without `client.`.
        namespace: of the Secret with the key, as `secret` and `field`.
        is_keyring: whether that field holds a keyring file, which is copied unchanged, rather than a key. A user names
            that Secret, so it must be annotated as being for benchmarks.

    """

    obj: Object
    user: str
    namespace: str
    secret: str
    field: str
    is_keyring: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSecret:
    """Check that a Secret which a run names, and its pods mount, is annotated as being for benchmarks."""

    namespace: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete an object if it still has that UID."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    foreground: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A Kubernetes event about a transition of the run."""

    kind: Severity
    reason: str
    message: str


Action = Create | CreateSecret | CopyKeyring | CheckSecret | Delete


def deletion(child: Child, *, foreground: bool = False) -> Delete:
    """Return the deletion of an object."""
    return Delete(
        api_version=child.api_version,
        kind=child.kind,
        namespace=child.namespace,
        name=child.name,
        uid=child.uid,
        foreground=foreground,
    )


def deletions(children: Iterable[Child]) -> tuple[Delete, ...]:
    """Return the deletions of the objects that are not being deleted yet."""
    return tuple(deletion(child) for child in children if not child.deleting)
