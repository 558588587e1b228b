"""Patches that replace fields of an object's status."""

from collections.abc import Mapping
from typing import Any

from plimsoll.kube.port import Object


def replacing(status: Mapping[str, Any], version: str | None) -> list[Object]:
    """Return a JSON patch (RFC 6902): a merge patch would keep the old keys of a mapping. None removes a field.

    With the version of the object that was read, the API server answers with a conflict if there is another one.
    """
    operations: list[Object] = []
    if version is not None:
        operations.append({"op": "add", "path": "/metadata/resourceVersion", "value": version})
    for field, value in status.items():
        path = f"/status/{field}"
        operations.append({"op": "add", "path": path, "value": value})
        if value is None:
            operations.append({"op": "remove", "path": path})
    return operations


def creating(status: Mapping[str, Any], version: str | None) -> Object:
    """Return a merge patch (RFC 7386) for an object without a status, to which the other one cannot add fields."""
    metadata = {} if version is None else {"metadata": {"resourceVersion": version}}
    return {"status": dict(status), **metadata}
