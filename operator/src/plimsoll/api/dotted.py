"""Fields of a run's specification as written, by their dotted path with the names of workloads.

The path of a field is that of `plimsoll suite plan`: `storage.volume.size`, `workloads.random-read.fio.blockSize`, or
`clients.nodeSelector.kubernetes.io/arch`, in which keys have dots themselves.
"""

from collections.abc import Mapping

from pydantic import JsonValue

Json = dict[str, JsonValue]


def without_field(document: Mapping[str, JsonValue], path: str) -> Json | None:
    """Return a document without the field at that path, or None if it has no such field. The input stays as it is."""
    if path in document:
        return {key: value for key, value in document.items() if key != path}
    for key, value in document.items():
        if path.startswith(f"{key}.") and (rest := _without(value, path.removeprefix(f"{key}."))) is not None:
            return {**document, key: rest}
    return None


def _without(value: JsonValue, path: str) -> JsonValue:
    """Return a mapping or a list of named mappings without the field at that path; None if it has no such field."""
    if isinstance(value, dict):
        return without_field(value, path)
    if isinstance(value, list):
        by_name = {str(entry["name"]): entry for entry in value if isinstance(entry, dict) and "name" in entry}
        if len(by_name) == len(value) and (left := without_field(by_name, path)) is not None:
            return list(left.values())
    return None
