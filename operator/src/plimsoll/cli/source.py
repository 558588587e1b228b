"""Where results are read from: a results directory, a file, or a run in a cluster.

In a cluster the user needs the right to list the BenchmarkResults of the run's namespace, and nothing else.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from plimsoll.api.errors import Problem, SpecError, problems_of
from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.api.result import BenchmarkResult, ResultMeta
from plimsoll.conductor.sink import read_results
from plimsoll.kube.errors import ApiError
from plimsoll.kube.port import Kind, Kube
from plimsoll.lifecycle import naming

MAX_FILE_BYTES = 256 * 2**20
"""More than the results of 512 points take."""

_RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
_IN_CLUSTER = re.compile(r"(?P<namespace>[a-z0-9][-a-z0-9]{0,62})/(?P<run>[a-z0-9][-a-z0-9]{0,62})")


def load_results(source: str) -> list[BenchmarkResult]:
    """Read the results that a user names: what is there on this machine, otherwise `namespace/run` in the cluster.

    Raises:
        click.ClickException: saying what is wrong and what to do; also if there are no results.

    """
    path = Path(source)
    try:
        if source and path.is_dir():
            found, remedy = read_results(path), "is it the --output of a run that has recorded a trial?"
        elif source and path.exists():
            found, remedy = _read_file(path), "write them with `plimsoll results ... -o json`"
        else:
            found, remedy = asyncio.run(_of_cluster(source)), "look for it with `kubectl get brun,bres`"
    except (ApiError, SpecError, ValueError, RecursionError, OSError) as error:
        message = f"the results in {source} cannot be read: {error}"
        raise click.ClickException(message) from error
    if not found:
        message = f"{source} holds no results; {remedy}"
        raise click.ClickException(message)
    return found


async def results_of_run(kube: Kube, namespace: str, run: str) -> list[BenchmarkResult]:
    """Read the results of a run in a cluster, by name.

    Raises:
        ApiError: if they cannot be listed.
        SpecError: naming the object and the field that cannot be read.

    """
    labels = {naming.LABEL_RUN: naming.label_value(run)}
    objects = await kube.list(_RESULT, namespace=namespace, labels=labels)
    return [_decoded(obj, obj["metadata"]["name"]) for obj in sorted(objects, key=lambda obj: obj["metadata"]["name"])]


async def _of_cluster(source: str) -> list[BenchmarkResult]:
    named = _IN_CLUSTER.fullmatch(source)
    if named is None:
        message = f"{source!r} is neither a directory nor a file here, nor NAMESPACE/RUN in a cluster; correct it"
        raise click.ClickException(message)
    # Only here: its import takes longer than everything else of a comparison.
    from plimsoll.kube.client import AioKube  # noqa: PLC0415

    async with AioKube() as kube:
        return await results_of_run(kube, named["namespace"], named["run"])


def _read_file(path: Path) -> list[BenchmarkResult]:
    """Read one result, a list of them as `plimsoll results -o json` writes it, or as `kubectl get -o json` does."""
    with path.open("rb") as file:
        # No more of an endless file, such as a pipe can be, than it takes to refuse it.
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        remedy = f"is larger than {MAX_FILE_BYTES // 2**20} MiB, which no run's results are; name another file"
        raise SpecError([Problem(field="", remedy=remedy)])
    document = json.loads(content)
    items = document.get("items", [document]) if isinstance(document, dict) else document
    if not isinstance(items, list):
        raise SpecError([Problem(field="items", remedy=f"must be a list of {RESULT_KIND} documents")])
    return [_decoded(item, f"[{number}]") for number, item in enumerate(items)]


def _decoded(document: object, name: str) -> BenchmarkResult:
    """Read a result without what only an API server or a table puts there."""
    try:
        return BenchmarkResult.model_validate(_without_extras(document) if isinstance(document, dict) else document)
    except ValidationError as error:
        raise SpecError(problems_of(error, prefix=[name])) from error


def _without_extras(document: Mapping[str, Any]) -> dict[str, Any]:
    own = dict(document)
    if isinstance(metadata := own.get("metadata"), dict):
        own["metadata"] = {key: value for key, value in metadata.items() if key in ResultMeta.model_fields}
    if isinstance(status := own.get("status"), dict):
        own["status"] = {key: value for key, value in status.items() if key != "display"}
    return own


def runs_of(results: Sequence[BenchmarkResult]) -> list[str]:
    """Return the UIDs of the runs that results are of."""
    return list(dict.fromkeys(result.spec.run_uid for result in results))
