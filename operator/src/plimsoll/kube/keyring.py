"""Copying the key of a CephX user to where pods of a run can mount it. It is in memory for as long as that takes."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from plimsoll.ceph.conf import KEYRING_FILE, keyring
from plimsoll.kube.errors import ForbiddenError, KeyringError, KeyringRefusedError
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle.actions import CheckSecret, CopyKeyring
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS

_SECRET = Kind(api_version="v1", kind="Secret")


async def copy_keyring(action: CopyKeyring, kube: Kube) -> None:
    """Create the Secret; one that is there is kept: its name, of which the run's UID is a part, says whose it is.

    Raises:
        KeyringError: if the key is not where it has to be, or is not for benchmarks.
        ForbiddenError: naming the right that is missing.

    """
    asked = f"copy the key of client.{action.user} from Secret {action.namespace}/{action.secret}"
    found = await _get(kube, action.secret, action.namespace, asked)
    if action.is_keyring:
        _check_allowed(found, asked)
    text = _text(found, action, asked)
    content = text if action.is_keyring else keyring(action.user, text)
    await kube.create({**action.obj, "data": {KEYRING_FILE: b64encode(content.encode()).decode()}})


async def check_secret(action: CheckSecret, kube: Kube) -> None:
    """See that a Secret is there and says that it is for benchmarks. What it holds is of no interest.

    Raises:
        KeyringError: if it is not there, or does not say so.
        ForbiddenError: naming the right that is missing.

    """
    asked = f"use Secret {action.namespace}/{action.secret}"
    _check_allowed(await _get(kube, action.secret, action.namespace, asked), asked)


async def _get(kube: Kube, name: str, namespace: str, asked: str) -> Object:
    try:
        found = await kube.get(_SECRET, name, namespace)
    except ForbiddenError as error:
        words = f"{error.reason}; bind a Role to the operator's ServiceAccount there that may get this Secret"
        raise ForbiddenError(asked, words) from error
    if found is None:
        raise KeyringError(asked, "there is no such Secret")
    return found


def _check_allowed(secret: Object, asked: str) -> None:
    """See that a user may name a Secret: who may make runs may not have any other Secret used as a key."""
    annotations = secret["metadata"].get("annotations") or {}
    if annotations.get(ALLOW_BENCHMARKS) != "true":
        raise KeyringRefusedError(asked, f'it has no annotation {ALLOW_BENCHMARKS}: "true"')


def _text(found: Object, action: CopyKeyring, asked: str) -> str:
    """Return what the field holds, without any word of it in an error."""
    encoded = (found.get("data") or {}).get(action.field)
    if not encoded:
        raise KeyringError(asked, f"it has no field {action.field}")
    try:
        text = b64decode(encoded).decode().strip()
    except (Base64Error, UnicodeDecodeError):
        raise KeyringError(asked, f"its field {action.field} holds no text") from None
    if action.is_keyring and f"[client.{action.user}]" not in text:
        words = f"its field {action.field} holds no keyring file with a section [client.{action.user}]"
        raise KeyringError(asked, words)
    return f"{text}\n" if action.is_keyring else text
