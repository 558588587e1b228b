"""Sources of results, runs and suites: a results directory, a file, or a cluster.

A source that begins with `bsuite/` is a suite, one with `brun/` a run. Any other with a slash or a dot is a path if it
exists. A bare name is a run for `kubectl plimsoll`, and with an option that chooses the cluster or the namespace;
otherwise it is a path if it exists, or else a run.

In a cluster the user needs the right to list BenchmarkResults in the run's namespace, and to list BenchmarkRuns for
suggestions about a run that does not exist.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click
from pydantic import ValidationError

from plimsoll.api.errors import Problem, SpecError, did_you_mean, problems_of
from plimsoll.api.names import API_VERSION, RESULT_KIND, RUN_KIND, SUITE_KIND
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli import exit_on
from plimsoll.cli.cluster import ClusterAccess, access, ask, is_about_a_cluster, program
from plimsoll.conductor.sink import read_results
from plimsoll.kube.port import ApiError, Kind, Kube
from plimsoll.lifecycle import naming
from plimsoll.measure.compare.values import RepeatsError, check_distinct
from plimsoll.measure.text import first_few
from plimsoll.suite.rounds.turns import LABEL_SUITE

RUN = Kind(api_version=API_VERSION, kind=RUN_KIND)
SUITE = Kind(api_version=API_VERSION, kind=SUITE_KIND)
CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
RESULT = Kind(api_version=API_VERSION, kind=RESULT_KIND)
SUITE_FILE, ROUND_FILE = "suite.yaml", "round.json"  # in the directory of a round
_KINDS = {"brun": RUN, "bsuite": SUITE}
_PART = "[a-z0-9][-a-z0-9]{0,62}"
_IN_CLUSTER = re.compile(f"(?:(?P<kind>{'|'.join(_KINDS)})/)?(?:(?P<namespace>{_PART})/)?(?P<name>{_PART})")


@dataclass(frozen=True, slots=True, kw_only=True)
class InCluster:
    """A run or a suite in a cluster, as named by the user."""

    kind: Kind
    access: ClusterAccess
    namespace: str
    name: str
    hint: str = ""  # the other meaning of the name, shown if the object does not exist; ends with a space or is empty

    @property
    def word(self) -> str:
        return "suite" if self.kind == SUITE else "run"

    @property
    def source(self) -> str:
        if self.kind == SUITE:
            return f"bsuite/{self}"
        return f"brun/{self}" if self.namespace in _KINDS else str(self)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def find_in_cluster(source: str) -> InCluster:
    """Return an object in a cluster, which may not exist; exits if the name is invalid."""
    named = _IN_CLUSTER.fullmatch(source)
    if named is None:
        raise click.ClickException(f"{source!r} is not a name; write NAME or NAMESPACE/NAME of a run, or bsuite/NAME")
    where, kind = access(), _KINDS.get(named["kind"] or "", RUN)
    return InCluster(kind=kind, access=where, namespace=named["namespace"] or where.namespace, name=named["name"])


def find(source: str) -> Path | InCluster:
    """Return an existing path, or an object, which may not exist in the cluster; exits if it can be neither."""
    named = _IN_CLUSTER.fullmatch(source)
    is_bare = named is not None and named["namespace"] is None
    is_object = named is not None and (named["kind"] is not None or (is_bare and is_about_a_cluster()))
    path = Path(source)
    if source and not is_object and path.exists():
        return path
    if named is None:
        raise click.ClickException(
            f"there is no file or directory {source!r}, and it is not the name of a run (NAME, NAMESPACE/NAME) or a "
            "suite (bsuite/NAME)"
        )
    if not is_object:
        hint = f"there is no file or directory {source}. Looking for a run of that name: "
    else:
        hint = f"write ./{source} for the local path. " if path.exists() else ""
    try:
        return replace(find_in_cluster(source), hint=hint)
    except click.ClickException as error:
        raise click.ClickException(f"{hint}{error.message}") from error


def is_suite(place: Path | InCluster) -> bool:
    """Whether a source is a suite in a cluster, or the directory of a round."""
    if isinstance(place, InCluster):
        return place.kind == SUITE
    return any((place / name).exists() for name in (SUITE_FILE, ROUND_FILE))


def are_suites(sources: Sequence[str]) -> bool:
    """Whether all sources are suites or rounds; exits if only some are."""
    places = {source: is_suite(find(source)) for source in sources}
    if len(set(places.values())) > 1:
        suites = [source for source, is_one in places.items() if is_one]
        raise click.UsageError(f"{suites[0]} is a suite, and others are runs; name runs, or one suite or its rounds")
    return all(places.values())


def load_results(source: str) -> list[BenchmarkResult]:
    """Read the results of a source, see `find`; exits if they cannot be read, or there are none."""
    place = find(source)
    if is_suite(place):
        message = f"{source} is a suite; name one of its runs"
        if isinstance(place, InCluster):
            message += f": `kubectl get brun --namespace {place.namespace} -l {LABEL_SUITE}={place.name}` lists them"
        raise click.ClickException(message)
    if isinstance(place, InCluster):
        return ask(place.access, lambda kube: _of_cluster(kube, place))
    remedy = "is it the results directory of a run that has recorded a trial?"
    with exit_on(SpecError, ValueError, RecursionError, OSError, what=f"the results in {source} cannot be read: "):
        if place.is_dir():
            results = read_results(place)
        else:
            results, remedy = _read_file(place), "create the file with `plimsoll results ... -o json`"
    if not results:
        raise click.ClickException(f"{source} contains no results; {remedy}")
    with exit_on(RepeatsError, what=f"{source}: "):
        check_distinct([results])
    return results


async def results_of_run(kube: Kube, namespace: str, run: str) -> list[BenchmarkResult]:
    """Read the results of a run in a cluster, sorted by name; a SpecError names the field that cannot be read."""
    labels = {naming.LABEL_RUN: naming.label_value(run)}
    objects = await kube.list(RESULT, namespace=namespace, labels=labels)
    return [_decoded(obj, obj["metadata"]["name"]) for obj in sorted(objects, key=lambda obj: obj["metadata"]["name"])]


async def no_such_object(kube: Kube, wanted: InCluster) -> click.ClickException:
    try:
        objects = await kube.list(wanted.kind, namespace=wanted.namespace)
    except ApiError:
        # The user may have the right to read results only.
        objects = []
    names = sorted(str(obj["metadata"]["name"]) for obj in objects)
    listed = f"there are {first_few(names, 10)}" if names else "-n chooses another namespace"
    where = f"namespace {wanted.namespace} of {wanted.access.cluster}; {did_you_mean(wanted.name, names) or listed}"
    return click.ClickException(f"{wanted.hint}there is no {wanted.word} {wanted.name} in {where}")


async def _of_cluster(kube: Kube, run: InCluster) -> list[BenchmarkResult]:
    with exit_on(SpecError, what=f"the results of {run} cannot be read: "):
        results = await results_of_run(kube, run.namespace, run.name)
    if results:
        return results
    with suppress(ApiError):
        if await kube.get(RUN, run.name, run.namespace) is not None:
            raise click.ClickException(f"run {run} has no results yet; `{program()} watch {run}` shows its progress")
    raise await no_such_object(kube, run)


def selected_points(results: Sequence[BenchmarkResult], points: Sequence[str]) -> list[BenchmarkResult]:
    """Return the results of these points, all results without a name; exits if a point does not exist."""
    names = [result.spec.point for result in results]
    for point in points:
        if point not in names:
            raise click.UsageError(f"--point {point} is not a point; the points are {first_few(names, 20)}")
    return [result for result in results if not points or result.spec.point in points]


def _read_file(path: Path) -> list[BenchmarkResult]:
    """Read one result, or a list as `plimsoll results -o json` or `kubectl get -o json` writes it."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        remedy = "name a results directory, a run, or a file that `plimsoll results ... -o json` wrote"
        raise ValueError(f"it is not JSON ({error}); {remedy}") from error
    items = document.get("items", [document]) if isinstance(document, dict) else document
    if not isinstance(items, list):
        raise SpecError([Problem(field="items", remedy=f"must be a list of {RESULT_KIND} documents")])
    return [_decoded(item, f"[{number}]") for number, item in enumerate(items)]


def _decoded(document: object, name: str) -> BenchmarkResult:
    """Read a result without the fields that only the API server or a table adds."""
    try:
        return BenchmarkResult.model_validate(document, extra="ignore")
    except ValidationError as error:
        raise SpecError(problems_of(error, prefix=[name])) from error


def runs_of(results: Sequence[BenchmarkResult]) -> list[str]:
    return list(dict.fromkeys(result.spec.run_uid for result in results))
