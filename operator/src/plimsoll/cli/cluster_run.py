"""`plimsoll run` in a cluster: says what a run or a suite will write, asks, creates it, watches it, and removes it."""

import asyncio
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from pydantic import JsonValue

from plimsoll.api.names import API_VERSION, RUN_KIND, SUITE_KIND
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.status import format_time
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.cli import Exit, options
from plimsoll.cli.cluster import access, ask, given, kubectl_options, program
from plimsoll.cli.plan import ONLY_CLUSTER, evidence_text, written_text
from plimsoll.cli.source import RUN, SUITE, InCluster, find_in_cluster
from plimsoll.cli.tables import Terminal, facts_table
from plimsoll.cli.watch import watch
from plimsoll.lifecycle.storage.registry import provider_for
from plimsoll.plan.expand import estimate
from plimsoll.suite.children import variant_runs
from plimsoll.suite.rounds.turns import REQUEST_ROUND
from plimsoll.tools.fio.parameters import Pattern

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube

_PATTERNS = [pattern.value for pattern in Pattern if "trim" not in pattern]  # trims need a block device
_NAME_CHARACTERS = 40
_ADDED = "queue, provisioning, removal and repeated attempts"
_REMOVAL_SECONDS = 600


def quantity(value: str) -> str:
    try:
        parse_quantity(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} {error}") from error
    return value


@dataclass(frozen=True, kw_only=True)  # without slots: the options use its defaults
class Load:
    """The load of a run without a file."""

    patterns: Sequence[str] = (Pattern.RANDREAD.value, Pattern.RANDWRITE.value)
    sizes: Sequence[str] = ("4Ki",)  # of an operation
    depths: Sequence[int] = (16,)
    clients: int = 1
    size: str = "1Gi"  # of a PVC
    runtime: int = 10  # seconds


def cluster_run_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a run without a file; the command gets its document as `generated`, None without a class."""
    several = partial(click.option, multiple=True, show_default=True)
    single = partial(click.option, show_default=True)

    @options.storage_class_option("Measure PVCs of this StorageClass, without a FILE.")
    @several(
        "--pattern",
        "patterns",
        type=click.Choice(_PATTERNS),
        default=Load.patterns,
        help="I/O pattern; may be repeated.",
    )
    @several("--block-size", "sizes", type=quantity, default=Load.sizes, help="Size of an operation; may be repeated.")
    @several(
        "--depth", "depths", type=click.IntRange(1), default=Load.depths, help="Operations in flight; may be repeated."
    )
    @single("--clients", type=click.IntRange(1), default=Load.clients, help="Pods with a PVC each.")
    @single("--size", type=quantity, default=Load.size, help="Size of each PVC.")
    @single(
        "--runtime",
        type=options.duration,
        metavar="TIME",
        default=f"{Load.runtime}s",
        help="Duration of a trial; each point has three.",
    )
    @wraps(function)
    def command(*, storage_class: str | None, **options: Any) -> None:  # noqa: ANN401 - click's
        load = Load(**{field.name: options.pop(field.name) for field in fields(Load)})
        function(generated=generated_run(storage_class, load) if storage_class else None, **options)

    return command


def generated_run(storage_class: str, load: Load) -> dict[str, Any]:
    """Return the run of a StorageClass, with a name of its own."""
    axes = {"blockSize": [*dict.fromkeys(load.sizes)], "ioDepth": [*dict.fromkeys(load.depths)]}
    times = {"runtimeSeconds": load.runtime, "rampSeconds": min(10, load.runtime // 5)}
    spec = {
        "storage": {"storageClass": {"name": storage_class}, "volume": {"size": load.size}},
        "clients": {"count": load.clients},
        "workloads": [
            {"name": pattern, "fio": {"pattern": pattern, **axes}, **times} for pattern in dict.fromkeys(load.patterns)
        ],
        "repetitions": 3,
        "prepare": {"settleSeconds": 2},
    }
    prefix = storage_class.replace(".", "-")[:_NAME_CHARACTERS].strip("-")
    if not prefix[:1].isalpha():  # as the name of a run has to begin
        prefix = f"run-{prefix}"
    metadata = {"name": f"{prefix}-{secrets.token_hex(3)}"}
    return {"apiVersion": API_VERSION, "kind": RUN_KIND, "metadata": metadata, "spec": spec}


def run_in_cluster(
    source: Path,
    document: JsonValue,
    *,
    yes: bool,
    remove: bool,
    dry_run: bool,
    timeout: int | None,
    strict: bool,
) -> Exit:
    """Create the run or the suite of a document, follow it to its end, and return the exit code.

    `source` is what errors name. Exits if the document is invalid, the user does not confirm, or the name is taken.
    """
    manifest, chosen = options.decode_file(source, document), given("namespace")
    written = cast("dict[str, Any]", document)
    metadata = written["metadata"]
    if chosen and metadata.setdefault("namespace", chosen) != chosen:
        message = f"--namespace is {chosen}, but metadata.namespace of {source} is {metadata['namespace']}"
        raise click.UsageError(message)
    if dry_run:
        # Needs no cluster; without --namespace, kubectl applies it to the namespace of its context.
        options.write_document(written, options.YAML)
        return Exit.DONE
    where = access()
    namespace = metadata.setdefault("namespace", where.namespace)
    kind = RUN if isinstance(manifest, BenchmarkRun) else SUITE
    place = InCluster(kind=kind, access=where, namespace=namespace, name=manifest.metadata.name)
    _confirm(place, _facts(source, manifest), "Create it?", yes=yes)
    ask(where, lambda kube: _create(kube, place, written), role="edit")
    click.echo(f"{place.word.capitalize()} {place} created")
    has_ended, has_to_go = False, True
    try:
        uid = ask(where, lambda kube: _uid(kube, place))
        code = watch(place, timeout, strict=strict)
        has_ended = code not in {Exit.INTERRUPTED, Exit.TIMEOUT}
        if has_ended and remove:
            ask(where, lambda kube: _remove(kube, place, uid), role="edit")
            click.echo(f"{place.word.capitalize()} {place} removed", err=True)
        has_to_go = not has_ended
    finally:
        if has_to_go:
            command = f"kubectl delete {kind.kind.lower()} {place.name} --namespace {namespace}{kubectl_options()}"
            click.echo(f"`{command}` {'removes' if has_ended else 'stops and removes'} it", err=True)
    return code


def request_round(source: str, *, yes: bool, timeout: int | None, strict: bool) -> Exit:
    """Request a round of a suite that exists in the cluster, follow it to its end, and return the exit code."""
    place = find_in_cluster(source)
    suite = ask(place.access, lambda kube: kube.get(place.kind, place.name, place.namespace))
    if suite is None:
        raise click.ClickException(f"there is no suite {place}; create it with `{program()} run FILE`")
    file, metadata = Path(source), {"name": place.name, "namespace": place.namespace}
    described = {"apiVersion": API_VERSION, "kind": SUITE_KIND, "metadata": metadata, "spec": suite["spec"]}
    _confirm(place, _facts(file, options.decode_file(file, cast("JsonValue", described))), "Begin a round?", yes=yes)
    request = f"{format_time(datetime.now(UTC))} {secrets.token_hex(3)}"
    patch = {"metadata": {"annotations": {REQUEST_ROUND: request}}}
    ask(place.access, lambda kube: kube.patch(place.kind, place.name, place.namespace, patch), role="edit")
    click.echo(f"Round of suite {place} requested")
    return watch(place, timeout, request=request, strict=strict)


def _confirm(place: InCluster, facts: Iterator[tuple[str, str]], question: str, *, yes: bool) -> None:
    """Say what will be loaded, and return once the user agrees; exits otherwise."""
    where = [("Cluster", place.access.cluster), ("Namespace", place.namespace)]
    Terminal().print(facts_table([*where, *facts]))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("there is no terminal to ask for a confirmation; add --yes to confirm")
        click.confirm(question, abort=True)


def _facts(source: Path, manifest: BenchmarkRun | BenchmarkSuite) -> Iterator[tuple[str, str]]:
    if isinstance(manifest, BenchmarkSuite):
        runs, plans = [*variant_runs(manifest).values()], [*options.freeze_variants(source, manifest, 0).values()]
        repeat = manifest.spec.repeat
        yield ("Runs", str(repeat * len(runs)))
        yield ("Evidence", evidence_text(manifest))
    else:
        runs, plans, repeat = [manifest], [options.freeze(source, manifest, 0)], 1
    storages = [run.spec.storage.model_dump(mode="json") if run.spec.storage else {} for run in runs]
    targets = {target for storage in storages for target in provider_for(storage).targets(storage) or {ONLY_CLUSTER}}
    yield ("Target", ", ".join(sorted(targets)))
    seconds = repeat * sum(estimate(plan).total_seconds for plan in plans)
    about = "at most" if any(point.line for plan in plans for point in plan.points) else "about"
    yield ("Time", f"{about} {timedelta(seconds=seconds)}; {_ADDED} add to it")
    yield ("Writing", written_text(plans, repeat) or "nothing")


async def _create(kube: "AioKube", place: InCluster, document: Mapping[str, Any]) -> None:
    if await kube.create(document):
        return
    again = f"`{program()} run {place.source}` requests another round, and `kubectl apply` changes the suite"
    remedy = again if place.kind == SUITE else "a run measures once; choose another metadata.name, or delete that run"
    raise click.ClickException(
        f"{place.word} {place} exists already, and `{program()} watch {place.source}` follows it; {remedy}"
    )


async def _uid(kube: "AioKube", place: InCluster) -> str:
    if (created := await kube.get(place.kind, place.name, place.namespace)) is None:
        raise click.ClickException(f"somebody deleted {place.word} {place} right after it was created")
    return cast("str", created["metadata"]["uid"])


async def _remove(kube: "AioKube", place: InCluster, uid: str) -> None:
    # The operator cleans up after a run; the garbage collector has to wait for the runs of a suite.
    await kube.delete(place.kind, place.name, place.namespace, uid=uid, foreground=place.kind == SUITE)
    for _ in range(_REMOVAL_SECONDS):
        left = await kube.get(place.kind, place.name, place.namespace)
        if left is None or left["metadata"]["uid"] != uid:
            return
        await asyncio.sleep(1)
    raise click.ClickException(
        f"{place.word} {place} is still being removed after {_REMOVAL_SECONDS} s; its condition CleanedUp shows why"
    )
