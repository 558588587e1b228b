"""Copies a CephX user's key to where a run's pods can mount it. The key is in memory only meanwhile."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from plimsoll.ceph.conf import KEYRING_FILE, keyring
from plimsoll.kube.errors import ForbiddenError
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle.decision import CheckSecret, CopyKeyring
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS
from plimsoll.reconcile.refusals import KeyringError, KeyringRefusedError

_SECRET = Kind(api_version="v1", kind="Secret")


async def copy_keyring(action: CopyKeyring, kube: Kube) -> None:
    """Create the Secret; keep an existing one: its name contains a digest of the run's UID, so it is the run's.

    Raises:
        KeyringError: if the key is missing, or not annotated as being for benchmarks.
        ForbiddenError: naming the missing permission.

    """
    asked = f"copy the key of client.{action.user} from Secret {action.namespace}/{action.secret}"
    found = await _get(kube, action.secret, action.namespace, asked)
    if action.is_keyring:
        _check_allowed(found, asked)
    text = _text(found, action, asked)
    content = text if action.is_keyring else keyring(action.user, text)
    await kube.create({**action.obj, "data": {KEYRING_FILE: b64encode(content.encode()).decode()}})


async def check_secret(action: CheckSecret, kube: Kube) -> None:
    """Check that a Secret exists and is annotated as being for benchmarks.

    Raises:
        KeyringError: if it does not exist, or has no such annotation.
        ForbiddenError: naming the missing permission.

    """
    asked = f"use Secret {action.namespace}/{action.secret}"
    _check_allowed(await _get(kube, action.secret, action.namespace, asked), asked)


async def _get(kube: Kube, name: str, namespace: str, asked: str) -> Object:
    try:
        found = await kube.get(_SECRET, name, namespace)
    except ForbiddenError as error:
        words = f"{error.reason}; bind a Role that may get this Secret to the operator's ServiceAccount"
        raise ForbiddenError(asked, words) from error
    if found is None:
        raise KeyringError(asked, "the Secret does not exist")
    return found


def _check_allowed(secret: Object, asked: str) -> None:
    """Check the annotation: users who may create runs must not get access to other Secrets."""
    annotations = secret["metadata"].get("annotations") or {}
    if annotations.get(ALLOW_BENCHMARKS) != "true":
        raise KeyringRefusedError(asked, f'it has no annotation {ALLOW_BENCHMARKS}: "true"')


def _text(found: Object, action: CopyKeyring, asked: str) -> str:
    """Return the content of the field, which no error message quotes."""
    encoded = (found.get("data") or {}).get(action.field)
    if not encoded:
        raise KeyringError(asked, f"it has no field {action.field}")
    try:
        text = b64decode(encoded).decode().strip()
    except (Base64Error, UnicodeDecodeError):
        raise KeyringError(asked, f"its field {action.field} is not text") from None
    if action.is_keyring and f"[client.{action.user}]" not in text:
        words = f"its field {action.field} is not a keyring file with a section [client.{action.user}]"
        raise KeyringError(asked, words)
    return f"{text}\n" if action.is_keyring else text
