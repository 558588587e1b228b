"""Does a run need the operator at all? The daemon and the delete handler share this one answer."""

from collections.abc import Mapping
from typing import Any

_SETTLED = {"Removed", "NothingMade"}


def needs_attention(body: Mapping[str, Any]) -> bool:
    """Tell whether a run is not terminal, or not clean, or was changed, or is to go some time after its end."""
    status = body.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    terminal = conditions.get("Succeeded", {}).get("status") in {"True", "False"}
    clean = conditions.get("CleanedUp", {}).get("reason") in _SETTLED
    expires = (body.get("spec") or {}).get("ttlSecondsAfterFinished") is not None
    return not terminal or not clean or expires or _is_unseen(body["metadata"], status)


def _is_unseen(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Tell whether the specification was changed since: until that is seen, the run counts as unfinished.

    A deletion makes a generation of its own, of which nothing is to be seen.
    """
    return "deletionTimestamp" not in metadata and status.get("observedGeneration") != metadata.get("generation")
