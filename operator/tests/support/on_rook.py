"""Runs on a Rook cluster, and what they have outside their namespace."""

from typing import Any

from plimsoll.lifecycle.naming import LABEL_RUN_UID
from support.pretend_cluster import NAMESPACE, label
from support.pretend_rook import ROOK
from support.pretend_world import PretendWorld

LIBRBD = {"size": "1Gi", "access": "LibRBD"}
CLAIMS = {"size": "1Gi"}
SHARED = {"size": "1Gi", "sharing": "Shared"}
FILE_SYSTEM = {
    "cluster": ROOK["cluster"],
    "fileSystem": {"metadataPool": ROOK["pool"], "dataPools": [ROOK["pool"]]},
}
ERASURE_CODED = ROOK | {"pool": {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}}}


def create(world: PretendWorld, name: str = "a", volume: Any = LIBRBD, rook: Any = ROOK, **spec: Any) -> str:
    timeouts = {"provisionSeconds": 120, "readySeconds": 60, "totalSeconds": 600}
    return world.create(name, storage={"rook": rook, "volume": volume}, **{"timeouts": timeouts, **spec})


def outside(world: PretendWorld, uid: str) -> set[str]:
    """Return the kinds of what a run has outside its namespace."""
    objects = [obj for obj in world.cluster.kube.objects() if label(obj, LABEL_RUN_UID) == uid]
    return {obj["kind"] for obj in objects if obj["metadata"].get("namespace") != NAMESPACE}
