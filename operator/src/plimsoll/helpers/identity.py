"""The certificate of the helper that runs kube-burner: clients on other nodes send it tokens."""

import ssl
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

from plimsoll.conductor.secret import new_certificate, server_context, write_secret
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.protocol.assignment import CERTIFICATE_FILE, KEY_FILE
from plimsoll.protocol.helpers import BURNER_CERTIFICATE

_SECRET = Kind(api_version="v1", kind="Secret")
_CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
_DAYS = 3650
"""A client trusts one certificate, so its age protects nobody; deleting the Secret replaces it."""


async def identity(kube: Kube, namespace: str, directory: Path) -> ssl.SSLContext:
    """Return the TLS context of the helper in a namespace, after its certificate is published there.

    The certificate is made once and kept in a Secret; `directory` holds a copy. Raises ApiError, and ValueError if the
    Secret is damaged.
    """
    secret = await _stored(kube, namespace)
    write_secret(directory, secret)
    certificate = {CERTIFICATE_FILE: secret[CERTIFICATE_FILE].decode()}
    published = await kube.get(_CONFIG_MAP, BURNER_CERTIFICATE, namespace)
    if published is None:
        await kube.create(_object(_CONFIG_MAP, namespace, data=certificate))
    elif published.get("data") != certificate:
        await kube.patch(_CONFIG_MAP, BURNER_CERTIFICATE, namespace, {"data": certificate})
    return server_context(directory)


async def _stored(kube: Kube, namespace: str) -> Mapping[str, bytes]:
    """Return certificate and key from the Secret, which is created if it does not exist."""
    stored = await kube.get(_SECRET, BURNER_CERTIFICATE, namespace)
    if stored is None:
        certificate, key = new_certificate(days=_DAYS)
        encoded = {CERTIFICATE_FILE: b64encode(certificate).decode(), KEY_FILE: b64encode(key).decode()}
        made = _object(_SECRET, namespace, type="Opaque", data=encoded)
        # False if an earlier process of the helper, which is ending, has made it meanwhile.
        stored = made if await kube.create(made) else await kube.get(_SECRET, BURNER_CERTIFICATE, namespace)
    data = (stored or {}).get("data") or {}
    missing = [name for name in (CERTIFICATE_FILE, KEY_FILE) if name not in data]
    if missing:
        message = f"Secret {namespace}/{BURNER_CERTIFICATE} has no {', '.join(missing)}; delete it"
        raise ValueError(message)
    return {name: b64decode(data[name]) for name in (CERTIFICATE_FILE, KEY_FILE)}


def _object(kind: Kind, namespace: str, **content: object) -> Object:
    metadata = {"name": BURNER_CERTIFICATE, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content}
