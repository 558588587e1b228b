"""What can be wrong with the workloads of dd and ioping."""

from typing import Any

from support.corpus_tools import sizes
from support.manifests import IMAGE, ROOK, Manifest

_TOOLS = ("dd", "ioping")
_W = "spec.workloads[0]"


def _on_claim(name: str, tool: str, parameters: Any, *says: str, **changes: Any) -> Manifest:
    """Return a run of a tool on the volumes of the least run."""
    return Manifest(
        name=f"{tool} {name}", changes={"spec.workloads": [{"name": "w", tool: parameters}], **changes}, says=says
    )


def _bad(tool: str, field: str, words: str, *, value: Any, at: str = "") -> Manifest:
    """Return a run with one parameter that is refused at its path, or at `at`."""
    return _on_claim(f"{field} {str(value)[:24]!r}", tool, {field: value}, f"{_W}.{tool}.{at or field}", words)


def _operations(tool: str, supported: str) -> list[Manifest]:
    """Return what is wrong with an axis of operations."""
    name = "operation"
    return [
        _bad(tool, name, "must be of type array", value="Read"),
        _bad(tool, name, "at least 1 items", value=[]),
        _bad(tool, name, "at most 64 items", value=[f"Read{number}" for number in range(65)]),
        _bad(tool, name, 'Duplicate value: "Read"', value=["Read", "Read"], at=f"{name}[1]"),
        _bad(tool, name, f"supported values: {supported}", value=["read"], at=f"{name}[0]"),
    ]


_DD = [
    *_operations("dd", '"Read", "Write", "Copy"'),
    *sizes("dd", "blockSize", 512, ((1000, "multiple of 512"),)),
    _bad("dd", "count", "greater than or equal to 1", value=0),
    _bad("dd", "count", "2147483647", value=2**31),
    _bad("dd", "count", "must be of type integer", value="9"),
    _bad("dd", "direct", "must be of type boolean", value="yes"),
    _bad("dd", "fdatasync", "must be of type boolean", value=1),
    _bad("dd", "fdatasync", "applies only to Write and Copy", value=True),
]

_IOPING = [
    *_operations("ioping", '"Read", "Write"'),
    *sizes("ioping", "size", 512, ((1000, "multiple of 512"),)),
    _bad("ioping", "intervalMilliseconds", "greater than or equal to 0", value=-1),
    _bad("ioping", "intervalMilliseconds", "less than or equal to 1000", value=1001),
    _bad("ioping", "intervalMilliseconds", "must be of type integer", value="5"),
    _bad("ioping", "direct", "must be of type boolean", value="yes"),
]

_STORAGE = [
    *(
        _on_claim(
            "on an image",
            tool,
            {},
            "spec.storage.volume.access",
            f"cannot be LibRBD, because {tool} needs a file or a block device",
            **{"spec.storage": {"rook": ROOK, "volume": IMAGE}},
        )
        for tool in _TOOLS
    ),
    *(
        _on_claim(
            "reads unwritten extents",
            tool,
            {"operation": ["Write", "Read"]},
            "spec.prepare.prefill",
            "must be true, because a workload would read unwritten extents",
            **{"spec.prepare": {"prefill": False}},
        )
        for tool in _TOOLS
    ),
]

DISK_TOOLS = [*_DD, *_IOPING, *_STORAGE]

DISK_TOOLS_ACCEPTED = [
    *(_on_claim("by default", tool, {}) for tool in _TOOLS),
    *(
        _on_claim("writes without prefill", tool, {"operation": ["Write"]}, **{"spec.prepare": {"prefill": False}})
        for tool in _TOOLS
    ),
    _on_claim(
        "of everything",
        "dd",
        {"operation": ["Write", "Copy"], "blockSize": [512, "4Mi"], "count": 2, "direct": False, "fdatasync": True},
    ),
    _on_claim(
        "of everything",
        "ioping",
        {"operation": ["Read", "Write"], "size": [512, "64Ki"], "intervalMilliseconds": 1000, "direct": False},
    ),
]
