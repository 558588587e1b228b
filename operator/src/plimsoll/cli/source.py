"""Where results and runs are read from: a results directory, a file, or a cluster.

What has a slash or a dot may be a path, and is one if it exists. A bare name is that of a run for `kubectl plimsoll`,
and wherever an option names the cluster or the namespace; otherwise it is what exists here, or else a run.

In a cluster the user needs the right to list the BenchmarkResults of the run's namespace; what is said of a run that
is not found needs the right to list BenchmarkRuns.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from plimsoll.api.errors import Problem, SpecError, problems_of
from plimsoll.api.names import API_VERSION, RESULT_KIND, RUN_KIND
from plimsoll.api.result import BenchmarkResult, ResultMeta
from plimsoll.cli.cluster import Access, access, ask, is_about_a_cluster, program, suggestion
from plimsoll.conductor.sink import read_results
from plimsoll.kube.errors import ApiError
from plimsoll.kube.port import Kind, Kube
from plimsoll.lifecycle import naming

MAX_FILE_BYTES = 256 * 2**20
"""More than the results of 512 points take."""

RUN = Kind(api_version=API_VERSION, kind=RUN_KIND)
CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
_IN_CLUSTER = re.compile(r"(?:(?P<namespace>[a-z0-9][-a-z0-9]{0,62})/)?(?P<run>[a-z0-9][-a-z0-9]{0,62})")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInCluster:
    """A run that a user named, and where to ask for it.

    Attributes:
        beside: what to know of the other reading of that name, if there is no such run; ends with a space or is empty.

    """

    access: Access
    namespace: str
    name: str
    beside: str = ""

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.namespace}/{self.name}"


def find(source: str) -> Path | RunInCluster:
    """Return what a user names: a path that exists, or a run of which nobody has asked the cluster yet.

    Raises:
        click.ClickException: if it can be neither, or if nothing says which cluster to ask.

    """
    named = _IN_CLUSTER.fullmatch(source)
    is_run = named is not None and named["namespace"] is None and is_about_a_cluster()
    if source and not is_run and Path(source).exists():
        return Path(source)
    if named is None:
        message = f"{source!r} is neither a directory nor a file here, nor NAME or NAMESPACE/NAME of a run; correct it"
        raise click.ClickException(message)
    beside = _other_reading(source, is_run=is_run)
    try:
        return replace(find_run(source), beside=beside)
    except click.ClickException as error:
        raise click.ClickException(f"{beside}{error.message}") from error


def find_run(source: str) -> RunInCluster:
    """Return a run in a cluster that a user names, where nothing else can be meant.

    Raises:
        click.ClickException: if it is no name, or if nothing says which cluster to ask.

    """
    named = _IN_CLUSTER.fullmatch(source)
    if named is None:
        message = f"{source!r} is not the name of a run; write NAME or NAMESPACE/NAME"
        raise click.ClickException(message)
    where = access()
    return RunInCluster(access=where, namespace=named["namespace"] or where.namespace, name=named["run"])


def load_results(source: str) -> list[BenchmarkResult]:
    """Read the results that a user names; see `find`.

    Raises:
        click.ClickException: saying what is wrong and what to do; also if there are no results.

    """
    place = find(source)
    if isinstance(place, RunInCluster):
        return ask(place.access, lambda kube: _of_cluster(kube, place))
    remedy = "is it the --output of a run that has recorded a trial?"
    try:
        if place.is_dir():
            found = read_results(place)
        else:
            found, remedy = _read_file(place), "write them with `plimsoll results ... -o json`"
    except (SpecError, ValueError, RecursionError, OSError) as error:
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
    objects = await kube.list(RESULT, namespace=namespace, labels=labels)
    return [_decoded(obj, obj["metadata"]["name"]) for obj in sorted(objects, key=lambda obj: obj["metadata"]["name"])]


async def no_such_run(kube: Kube, run: RunInCluster) -> click.ClickException:
    """Return what to tell somebody who named a run that is not there."""
    try:
        names = [str(one["metadata"]["name"]) for one in await kube.list(RUN, namespace=run.namespace)]
    except ApiError:
        # Who may read results only learns no names.
        names = []
    ending = suggestion(run.name, names) or "; -n chooses another namespace"
    where = f"namespace {run.namespace} of {run.access.cluster}"
    return click.ClickException(f"{run.beside}there is no run {run.name} in {where}{ending}")


async def _of_cluster(kube: Kube, run: RunInCluster) -> list[BenchmarkResult]:
    try:
        found = await results_of_run(kube, run.namespace, run.name)
    except SpecError as error:
        message = f"the results of {run} cannot be read: {error}"
        raise click.ClickException(message) from error
    if found:
        return found
    if await _exists(kube, run):
        message = f"run {run} has no results yet; `{program()} watch {run}` shows what it waits for"
        raise click.ClickException(message)
    raise await no_such_run(kube, run)


async def _exists(kube: Kube, run: RunInCluster) -> bool:
    try:
        return await kube.get(RUN, run.name, run.namespace) is not None
    except ApiError:
        return False


def _other_reading(source: str, *, is_run: bool) -> str:
    """Return what to know of the reading of a source that was not taken."""
    if not is_run:
        return f"there is no file or directory {source} here, and as the name of a run: "
    return f"./{source} is here: write it so if you mean it. " if Path(source).exists() else ""


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
