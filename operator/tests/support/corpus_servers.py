"""Every constraint on the servers of a run: what breaks it."""

from typing import Any

from support.manifests import ROOK, Manifest, bounds, choice, refused

_PLACE = "spec.servers"
_GOOD = {"placement": "ClientNodes", "count": 2}


def _with(manifest: Manifest) -> Manifest:
    """Return a manifest whose servers are good but for its own changes."""
    return Manifest(
        name=manifest.name,
        changes={_PLACE: dict(_GOOD), **manifest.changes},
        says=manifest.says,
        model_accepts=manifest.model_accepts,
    )


def _selected(name: str, selector: Any, *says: str) -> Manifest:
    return refused(name, _PLACE, {**_GOOD, "placement": "Selected", "nodeSelector": selector}, *says)


SERVERS = [
    *map(_with, bounds(f"{_PLACE}.count", 1, 64)),
    *map(_with, choice(f"{_PLACE}.placement", "StorageNodes", "ClientNodes", "Selected")),
    refused("servers without a number", _PLACE, {"placement": "ClientNodes"}, "spec.servers.count", "Required value"),
    refused("servers without a placement", _PLACE, {"count": 2}, "spec.servers.placement", "Required"),
    _selected("servers on no labels", {}, "spec.servers.nodeSelector", "must be set with placement Selected"),
    refused(
        "servers on selected nodes without a selector",
        _PLACE,
        {**_GOOD, "placement": "Selected"},
        "spec.servers.nodeSelector",
        "must be set with placement Selected",
    ),
    refused(
        "servers on the nodes of clients with a selector",
        _PLACE,
        {**_GOOD, "nodeSelector": {"disk": "fast"}},
        "spec.servers.nodeSelector",
        "has no effect without placement Selected",
    ),
    _selected("servers on too many labels", {f"k{n}": "v" for n in range(33)}, "nodeSelector", "at most 32 items"),
    _selected("servers on a label that is no text", {"disk": True}, "nodeSelector.disk", "of type string"),
    _selected("servers on a long label", {"disk": "v" * 64}, "nodeSelector.disk", "more than 63"),
    refused(
        "servers beside unknown OSDs",
        _PLACE,
        {**_GOOD, "placement": "StorageNodes"},
        "spec.servers.placement",
        "cannot be StorageNodes without storage.rook",
    ),
    refused("servers that no tool uses", _PLACE, dict(_GOOD), "spec.servers", "has no effect, because no workload"),
    Manifest(
        name="servers beside OSDs that no tool uses",
        changes={
            "spec.storage": {"rook": ROOK, "volume": {"size": "1Gi"}},
            _PLACE: {**_GOOD, "placement": "StorageNodes"},
        },
        says=("spec.servers", "has no effect, because no workload"),
    ),
    _with(refused("servers with an unknown field", f"{_PLACE}.port", 1, 'unknown field "spec.servers.port"')),
]
