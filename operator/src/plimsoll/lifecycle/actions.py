"""What is to be done, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an object; if it is there already, keep that one."""

    obj: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSecret:
    """Create the session secret from freshly made keys, with the metadata of `obj`; if it is there already, keep it.

    Attributes:
        clients: how many of them get a token of their own; None if there is to be one for all.

    """

    obj: Object
    clients: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyKeyring:
    """Create a Secret with a CephX user's keyring and the metadata of `obj`; if it is there already, keep it.

    No key stands here: whoever does it reads the key from another Secret, and forgets it.

    Attributes:
        user: without `client.`.
        namespace: of the Secret that has the key, likewise `secret` and `field`.
        is_keyring: whether that field holds a keyring file, which is copied as it is, and not the mere key. It is a
            Secret that a user names then, and has to say that it is for benchmarks.

    """

    obj: Object
    user: str
    namespace: str
    secret: str
    field: str
    is_keyring: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSecret:
    """See that a Secret which a run names, and which its pods mount, says that it is for benchmarks."""

    namespace: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete an object, if it is still the one with that UID."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    foreground: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Tell whoever watches the run of a transition. `kind` is `Normal` or `Warning`."""

    kind: str
    reason: str
    message: str


Action = Create | CreateSecret | CopyKeyring | CheckSecret | Delete
