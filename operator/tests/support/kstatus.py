"""What generic clients make of an object's status: the rules of kstatus for kinds it does not know.

Source: sigs.k8s.io/cli-utils, pkg/kstatus/status/generic.go.
"""

from collections.abc import Mapping
from typing import Any


def kstatus(obj: Mapping[str, Any]) -> str:
    """Return `Terminating`, `InProgress`, `Failed` or `Current`."""
    metadata, status = obj["metadata"], obj.get("status", {})
    if "deletionTimestamp" in metadata:
        return "Terminating"
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata["generation"]:
        return "InProgress"
    true = {entry["type"] for entry in status.get("conditions", []) if entry["status"] == "True"}
    if "Reconciling" in true:
        return "InProgress"
    if "Stalled" in true:
        return "Failed"
    return "Current"
