"""What can be wrong with workloads of bonnie++."""

from typing import Any

from support.manifests import IMAGE, PRECONDITION, REMOVED, ROOK, Manifest

_W = "spec.workloads[0].bonnie"
_FILES = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Filesystem"}}
_TOO_SMALL = "greater than or equal to"
_TOO_LARGE = "less than or equal to"
_ON_FILES = ("spec.storage.volume.mode", "must be Filesystem, because bonnie works on files and directories")


def _bonnie(name: str, parameters: dict[str, Any], *says: str, **more: Any) -> Manifest:
    reasons = {key: more.pop(key) for key in ("model_accepts", "server_accepts") if key in more}
    changes = {"spec.storage": _FILES, "spec.workloads": [{"name": "w", "bonnie": parameters}]}
    return Manifest(name=f"bonnie {name}", changes=changes | more.get("changes", {}), says=says, **reasons)


def _bad(name: str, value: Any, words: str, *, at: str = "", model_accepts: str = "") -> Manifest:
    """Return a run with one parameter that is refused at its name, or at `at`."""
    return _bonnie(
        f"{name} {str(value)[:24]!r}", {name: value}, f"{_W}.{at or name}", words, model_accepts=model_accepts
    )


def _numbers(name: str, low: int, high: int) -> list[Manifest]:
    return [
        _bad(name, low - 1, f"{_TOO_SMALL} {low}"),
        _bad(name, high + 1, f"{_TOO_LARGE} {high}"),
        _bad(name, str(low), "must be of type integer"),
    ]


BONNIE_REFUSED = [
    *(
        _bad("size", size, words)
        for size, words in (
            (2**20 - 512, f"{_TOO_SMALL} 1048576"),
            (2**44 + 2**20, f"{_TOO_LARGE} 17592186044416"),
            (2**20 + 1, "multiple of 1048576"),
            ("1Ki", "should match"),
            ("17Ti", "should match"),
            ("1" * 33, "may not be more than 32 bytes"),
            (True, "size"),
        )
    ),
    _bad("chunkSize", "8Ki", "must be of type array"),
    _bad("chunkSize", [], "at least 1 items"),
    _bad("chunkSize", ["8Ki"] * 65, "at most 64 items"),
    _bad("chunkSize", ["8Ki", "8Ki"], 'Duplicate value: "8Ki"', at="chunkSize[1]"),
    _bad("chunkSize", ["3Ki"], '"1Ki", "2Ki", "4Ki"', at="chunkSize[0]"),
    *_numbers("seeks", 1, 10_000_000),
    *_numbers("seekProcesses", 1, 64),
    *_numbers("files", 0, 1024),
    *_numbers("directories", 1, 1024),
    *(_bad(name, "yes", "must be of type boolean") for name in ("characters", "directIo", "sync")),
    *(
        _bonnie(f"{name} {size!r}", {"maxFileSize": "64Mi", name: size}, f"{_W}.{name}", words)
        for name in ("maxFileSize", "minFileSize")
        for size, words in (
            (0, f"{_TOO_SMALL} 1"),
            (2**26 + 1, f"{_TOO_LARGE} 67108864"),
            ("4KB", "should match"),
            ("4" * 33, "may not be more than 32 bytes"),
            (True, name),
        )
    ),
    _bonnie("of single bytes with direct I/O", {"directIo": True}, f"{_W}.characters", "must be false with directIo"),
    _bonnie("sizes of no files", {"files": 0, "maxFileSize": "1Ki"}, f"{_W}.maxFileSize", "has no effect with files 0"),
    _bonnie("least size alone", {"minFileSize": "1Ki"}, f"{_W}.minFileSize", "must be absent without maxFileSize"),
    _bad("chunk_size", ["8Ki"], f'unknown field "{_W}.chunk_size"', at="chunk_size"),
    *(
        _bonnie(f"on {name}", {}, *_ON_FILES, changes={"spec.storage": storage})
        for name, storage in (
            ("a device", {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}),
            ("a claim of a pool", {"rook": ROOK, "volume": {"size": "1Gi"}}),
            ("an image", {"rook": ROOK, "volume": IMAGE}),
        )
    ),
    _bonnie("without storage", {}, "spec.storage", "must be set with a volume", changes={"spec.storage": REMOVED}),
    _bonnie(
        "beside fio",
        {},
        "spec.workloads",
        "cannot have both bonnie and",
        changes={"spec.workloads": [{"name": "w", "bonnie": {}}, {"name": "x", "fio": {}}]},
    ),
    _bonnie(
        "on overwritten data",
        {},
        PRECONDITION,
        "must be absent, because bonnie writes files of its own",
        changes={PRECONDITION: {}},
    ),
]

_LEAST_AND_MOST = {
    "size": "1Mi", "chunkSize": ["1Ki", "1Mi"], "seeks": 1, "seekProcesses": 64, "characters": False, "directIo": True,
    "sync": True, "files": 1024, "maxFileSize": "64Mi", "minFileSize": 1, "directories": 1024,
}  # fmt: skip
BONNIE_ACCEPTED = [
    _bonnie("by default", {}),
    _bonnie("with everything", _LEAST_AND_MOST),
    *(_bonnie(f"of {size!r}", {"size": size}) for size in (2**20, "819Mi")),
    _bonnie(
        "of more than the volume",
        {"size": "1Ti"},
        server_accepts="the size of the data set depends on more than a rule sees; the operator refuses it",
    ),
    _bonnie(
        "files with more than the most",
        {"maxFileSize": "1Ki", "minFileSize": "2Ki"},
        server_accepts="a quantity has many spellings, which a rule would have to compare; the operator refuses it",
    ),
    _bonnie(
        "on a shared volume",
        {},
        changes={"spec.storage": {"storageClass": {"name": "nfs"}, "volume": {"size": "1Gi", "sharing": "Shared"}}},
    ),
    _bonnie("without prefill", {}, changes={"spec.prepare": {"prefill": False}}),
]
