"""Whose requests a helper fulfils. Pure."""

from collections.abc import Collection

ANY_NAMESPACE = "*"

_PREFIX = "system:serviceaccount"
_PARTS = 4


def namespace_of(username: str) -> str | None:
    """Return the namespace of a ServiceAccount, `system:serviceaccount:NAMESPACE:NAME`; None for another user."""
    parts = username.split(":")
    if len(parts) != _PARTS or ":".join(parts[:2]) != _PREFIX or not all(parts):
        return None
    return parts[2]


def refusal(username: str, allowed: Collection[str]) -> str:
    """Return why a user may not have caches dropped, and the remedy; empty if the user may."""
    namespace = namespace_of(username)
    if namespace is None:
        return f"{username} is not a ServiceAccount; use the token of a run's conductor"
    if namespace in allowed or ANY_NAMESPACE in allowed:
        return ""
    return (
        f"runs in namespace {namespace} may not drop caches; ask the administrator to add it to the chart's "
        "caches.namespaces"
    )


def bearer_token(header: str) -> str:
    """Return the token of an Authorization header; empty if there is none."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
