"""The files beside kube-burner's output: lists of objects in JSON."""

import json

from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.kube_burner.log import Log
from plimsoll.tools.reading import JsonObject, failure, printable


def documents_of(output: Output, name: str) -> list[JsonObject]:
    """Return the list of objects in a file.

    Raises:
        OutputError: the file is missing or malformed.

    """
    if name not in output.files:
        raise OutputError(f"kube-burner wrote no {name}, {failure(output, *Log.of(output).errors)}")
    try:
        found = json.loads(output.files[name], object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"{name} is no JSON document: {printable(str(error))}") from error
    return JsonObject(path="", fields={name: found}).children(name)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields
