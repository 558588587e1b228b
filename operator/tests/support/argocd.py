"""Argo CD's part in a resource's health: it runs a script in Lua 5.1 on the object, and takes what that returns.

Source: argoproj/argo-cd, util/lua and resource_customizations. Argo CD opens the base, string, table and (mostly empty)
os libraries only; here there is no os either.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lupa.lua51 import LuaRuntime, lua_type  # type: ignore[import-untyped]

_LIBRARIES = frozenset({"string", "table"})
_BASE = frozenset({"assert", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "tostring", "type"})
HEALTHS = frozenset({"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"})


@dataclass(frozen=True, slots=True)
class Health:
    """What Argo CD shows of a resource."""

    status: str
    message: str


def health_of(script: Path, obj: dict[str, Any]) -> Health:
    """Run a health script on an object.

    Raises:
        lupa.lua51.LuaError: if the script fails, or uses what Argo CD does not give it.

    """
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    names = lua.globals()
    for name in [str(name) for name in names]:
        if name not in _LIBRARIES | _BASE:
            names[name] = None
    names["obj"] = _to_lua(lua, obj)
    returned = lua.execute(script.read_text())
    assert lua_type(returned) == "table", returned
    health = dict(returned.items())
    assert set(health) == {"status", "message"}
    assert health["status"] in HEALTHS
    assert isinstance(health["message"], str)
    return Health(health["status"], health["message"])


def _to_lua(lua: LuaRuntime, value: Any) -> Any:
    """Return what Argo CD makes of JSON: every number is a float there."""
    match value:
        case dict():
            return lua.table_from({key: _to_lua(lua, part) for key, part in value.items()})
        case list():
            return lua.table_from([_to_lua(lua, part) for part in value])
        case bool():
            return value
        case int():
            return float(value)
    return value
