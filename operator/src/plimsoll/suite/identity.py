"""Whether two variants differ in what they change, and in nothing else.

The identity of a result is what was measured, and how (`plan.fingerprint`). Each field that two variants set
differently explains some keys of it; any other difference means that they were measured under different conditions.
"""

from collections.abc import Iterable, Iterator, Sequence

from plimsoll.api.run import GENERIC_WORKLOAD_FIELDS
from plimsoll.api.suite import BY_NAME
from plimsoll.plan.fingerprint import Difference
from plimsoll.suite.differences import FieldChange

_OF_STORAGE = ("volume", "dataSetBytes", "storageClass", "pool", "fileSystem", "cephOptions")
_OF_A_TOOL = ("tool", "toolVersions", "parameters", "prepare.prefill", "prepare.perTrial")
_FURTHER = {
    "clients.count": ("clients", "dataSetBytes"),
    "prepare.fillPercent": ("dataSetBytes",),
    "prepare.dropCaches": ("osdCaches",),
}
"""Path of a specification -> keys of the identity that follow from it, besides the one of the same name."""


def unexplained(changes: Sequence[FieldChange], workload: str, found: Iterable[Difference]) -> tuple[Difference, ...]:
    """Return the differences in identity that do not follow from what two variants set differently.

    `changes` are those between the two variants, `found` the differences between two results of that workload.
    """
    keys = {key for change in changes for key in _keys(change.path, workload)}
    if len(_tools(changes, workload)) > 1:
        keys |= set(_OF_A_TOOL)
    return tuple(one for one in found if one.part == "identity" and not _is_within(one.key, keys))


def _is_within(key: str, keys: Iterable[str]) -> bool:
    return any(key == known or key.startswith(f"{known}.") for known in keys)


def _keys(path: str, workload: str) -> Iterator[str]:
    """Yield the keys of the identity that may differ because of a field of the specification, with all below them."""
    yield from _FURTHER.get(path, ())
    if path.startswith("storage."):
        yield from _OF_STORAGE
    if path.startswith(("servers.", "prepare.")):
        yield ".".join(path.split(".")[:2])
    match _within_workload(path, workload).split("."):
        case [field] if field in GENERIC_WORKLOAD_FIELDS:
            yield field
        case ["line", *_]:
            yield "line"
        case [_, parameter, *_]:
            yield f"parameters.{parameter}"


def _tools(changes: Sequence[FieldChange], workload: str) -> set[str]:
    """Return the tools of a workload whose parameters differ; two of them if the variants have different tools."""
    fields = {_within_workload(change.path, workload).partition(".")[0] for change in changes}
    return fields - {"", *GENERIC_WORKLOAD_FIELDS}


def _within_workload(path: str, workload: str) -> str:
    """Return a path within the workload, such as `fio.blockSize`; empty for all others."""
    place = f"{BY_NAME}.{workload}."
    return path.removeprefix(place) if path.startswith(place) else ""
