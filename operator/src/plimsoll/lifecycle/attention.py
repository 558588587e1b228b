"""Does a run need the operator at all? The daemon and the delete handler share this one answer."""

from collections.abc import Mapping
from typing import Any

_SETTLED = {"Removed", "NothingMade"}


def needs_attention(body: Mapping[str, Any]) -> bool:
    """Tell whether a run is not terminal, or not clean, or is to be deleted some time after its end."""
    conditions = {condition["type"]: condition for condition in (body.get("status") or {}).get("conditions", [])}
    terminal = conditions.get("Succeeded", {}).get("status") in {"True", "False"}
    clean = conditions.get("CleanedUp", {}).get("reason") in _SETTLED
    expires = (body.get("spec") or {}).get("ttlSecondsAfterFinished") is not None
    return not terminal or not clean or expires
