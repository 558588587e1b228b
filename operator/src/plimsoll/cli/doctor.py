"""`plimsoll doctor`: what works in a cluster or on this machine, and how to fix what does not."""

import asyncio
import sys
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plimsoll import __version__
from plimsoll.api.names import API_VERSION, GROUP, RUN_KIND, Verdict
from plimsoll.cli import Exit
from plimsoll.cli.cluster import ClusterAccess, access, ask, cluster_options, explain, given
from plimsoll.cli.cluster_run import Load, generated_run
from plimsoll.cli.diagnosis import KINDS, RIGHTS, Facts, Finding, Hidden, State, diagnose, environment_of, operator_of
from plimsoll.cli.doctor_local import check_machine
from plimsoll.cli.local_storage import Target
from plimsoll.cli.options import TABLE, StorageClassName, document_option, fio_option, write_document
from plimsoll.cli.tables import Terminal, fitted, print_line
from plimsoll.kube.port import ApiError, ForbiddenError, Kind, Object, UnknownKindError
from plimsoll.lifecycle.ceph.rook_render import API_VERSION as ROOK_VERSION
from plimsoll.lifecycle.ceph.rook_render import CEPH_CLUSTER
from plimsoll.lifecycle.render.common import OSD_LABELS
from plimsoll.report.view import NONE, Column

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube

_SECONDS = 10.0  # for each answer
_LEASE = Kind(api_version="coordination.k8s.io/v1", kind="Lease")
_NAMESPACE = Kind(api_version="v1", kind="Namespace")
_MONITOR = Kind(api_version="monitoring.coreos.com/v1", kind="ServiceMonitor")
_OURS = {"app.kubernetes.io/part-of": "plimsoll"}
_MARKS = {State.OK: Verdict.VALID, State.PROBLEM: Verdict.INVALID, State.UNKNOWN: Verdict.SUSPECT}
_COLUMNS: Sequence[Column[Finding]] = (
    Column("Check", lambda finding: finding.check),
    Column(
        "State",
        lambda finding: finding.state,
        show=lambda state: NONE if state is State.UNUSED else state,
        mark=lambda finding: _MARKS.get(finding.state, ""),
    ),
    Column("Finding", lambda finding: finding.text, folded=True),
)

T = TypeVar("T")
M = TypeVar("M")


@click.command(short_help="Check a cluster or a machine before the first run.")
@click.option("--storage-class", type=StorageClassName(), help="Check only this class, and whether a run can use it.")
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Check this machine, and this directory.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="DEVICE",
    help="Check this machine, and this block device, without writing to it; may be repeated.",
)
@fio_option
@document_option
@cluster_options
def command(
    *, storage_class: str | None, directory: Path | None, devices: tuple[Path, ...], fio: str, output: str
) -> None:
    """Check a cluster, or this machine, before the first run; or find out why a run does not start.

    In a cluster it checks what is installed and its versions, the operator, what you may do in the namespace, the Rook
    clusters and StorageClasses, Pod Security, quotas, nodes, clocks and metrics. It changes nothing. Checks that you
    have no right to make are `unknown`, with the right that they need.

    With --directory or --device it checks this machine: fio, direct I/O, free space or the device, CPUs and load. It
    writes one MiB to the directory, and only reads devices.

    Exits with 1 if something does not work. Below the table is what to do about it: a command, a value of the chart.
    """
    if directory is not None or devices:
        if directory is not None and devices:
            raise click.UsageError("--directory and --device cannot be combined; check them one after the other")
        if storage_class is not None or any(map(given, ("namespace", "context", "kubeconfig"))):
            raise click.UsageError("--directory and --device are for this machine; leave out the options of a cluster")
        findings = [*check_machine(Target(directory=directory, devices=devices), fio)]
    else:
        where = access()
        findings = ask(where, lambda kube: _examine(kube, where, storage_class))
    if output == TABLE:
        console = Terminal()
        console.print(fitted(_COLUMNS, findings))
        # Each on a line of its own, however long, so that it can be pasted.
        for finding in filter(lambda finding: finding.fix, findings):
            print_line(console, f"\n{finding.check}:\n  {finding.fix}")
    else:
        write_document([asdict(finding) for finding in findings], output)
    sys.exit(Exit.ERROR if any(finding.state is State.PROBLEM for finding in findings) else Exit.DONE)


async def _examine(kube: "AioKube", where: ClusterAccess, storage_class: str | None) -> list[Finding]:
    try:
        facts = await _gather(kube, where.namespace, storage_class)
    except ApiError as error:
        return [Finding(check="API server", state=State.PROBLEM, text=explain(error, where).replace("\n", "; "))]
    return [*diagnose(facts)]


async def _gather(kube: "AioKube", namespace: str, storage_class: str | None) -> Facts:
    """Read what the rules need, as far as the person may; ApiError if the API server does not answer at all."""
    kubernetes = await kube.version()
    ahead = (datetime.now(UTC) - kube.clock.now()).total_seconds()
    reviewed = await kube.review({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})

    def listed(api_version: str, kind: str, inside: str | None = None, **options: Any) -> Awaitable[Any]:  # noqa: ANN401 - the client's
        resource = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
        request = kube.list(Kind(api_version=api_version, kind=kind), namespace=inside, **options)
        return _seen(request, f"list {resource}{f' in namespace {inside}' if inside else ''}", ())

    queries = {
        "rights": _seen(_rights(kube, namespace), "create selfsubjectaccessreviews", {}),
        "namespaces": _seen(_named(kube, _NAMESPACE, namespace), f"get namespaces {namespace}", ()),
        "unserved": _unserved(kube),
        "definitions": listed("apiextensions.k8s.io/v1", "CustomResourceDefinition", labels=_OURS),
        "operators": listed("apps/v1", "Deployment", labels=_OURS | {"app.kubernetes.io/component": "operator"}),
        "runs": listed(API_VERSION, RUN_KIND, namespace),
        "ceph_clusters": listed(ROOK_VERSION, CEPH_CLUSTER),
        "osds": listed("apps/v1", "Deployment", labels=OSD_LABELS),
        "classes": listed("storage.k8s.io/v1", "StorageClass"),
        "drivers": listed("storage.k8s.io/v1", "CSIDriver"),
        "csi_nodes": listed("storage.k8s.io/v1", "CSINode"),
        "volumes": listed("v1", "PersistentVolume", keep=_is_available),
        "quotas": listed("v1", "ResourceQuota", namespace),
        "limit_ranges": listed("v1", "LimitRange", namespace),
        "nodes": listed("v1", "Node"),
        "node_leases": listed(_LEASE.api_version, _LEASE.kind, "kube-node-lease"),
        "monitors": _seen(kube.list(_MONITOR, labels=_OURS), "list servicemonitors", None),
    }
    answers: dict[str, Any] = dict(zip(queries, await asyncio.gather(*queries.values()), strict=True))
    facts = Facts(
        version=__version__,
        kubernetes=kubernetes,
        namespace=namespace,
        user=((reviewed.get("status") or {}).get("userInfo") or {}).get("username") or "",
        storage_class=storage_class,
        now=kube.clock.now(),
        ahead_seconds=ahead,
        **answers,
    )
    return replace(facts, refusal=await _refusal(kube, facts), **await _operator_facts(kube, facts))


async def _seen(answer: Awaitable[T], needs: str, otherwise: M) -> T | M | Hidden:
    """Return an answer, `otherwise` if the API server does not serve the kind, and what is missing if it refuses."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await answer
    except UnknownKindError:
        return otherwise
    except ForbiddenError:
        return Hidden(f"needs {needs}")
    except TimeoutError:
        return Hidden(f"{needs}: no answer within {_SECONDS:.0f} s")
    except ApiError as error:
        return Hidden(f"{needs}: {error.reason}")


async def _named(kube: "AioKube", kind: Kind, name: str, namespace: str | None = None) -> Sequence[Object]:
    obj = await kube.get(kind, name, namespace)
    return () if obj is None else (obj,)


async def _unserved(kube: "AioKube") -> Sequence[str]:
    """Return Plimsoll's kinds that the API server does not serve; all users can see the served kinds."""

    async def is_served(kind: str) -> bool:
        listing = kube.versions(Kind(api_version=API_VERSION, kind=kind), namespace="default", labels={"none": "none"})
        return await _seen(listing, "", None) is not None

    return [kind for kind in KINDS if not await is_served(kind)]


async def _rights(kube: "AioKube", namespace: str) -> Mapping[tuple[str, str], bool]:
    async def is_allowed(verb: str, resource: str) -> bool:
        attributes = {"namespace": namespace, "verb": verb, "group": GROUP, "resource": resource}
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        answer = await kube.review({**kind, "spec": {"resourceAttributes": attributes}})
        return bool(answer["status"]["allowed"])

    wanted = [right for rights in RIGHTS.values() for right in rights]
    return dict(zip(wanted, await asyncio.gather(*(is_allowed(*right) for right in wanted)), strict=True))


async def _refusal(kube: "AioKube", facts: Facts) -> str | Hidden:
    """Return why a run would not be accepted, by a dry run."""
    if isinstance(facts.rights, Hidden) or facts.unserved or not facts.rights["create", "benchmarkruns"]:
        return Hidden(f"needs create benchmarkruns in namespace {facts.namespace}")
    run = generated_run(facts.storage_class or "any", Load())
    run["metadata"]["namespace"] = facts.namespace
    try:
        await kube.create(run, dry_run=True)
    except ApiError as error:
        return error.reason
    return ""


async def _operator_facts(kube: "AioKube", facts: Facts) -> Mapping[str, Any]:
    """Return what the operator's Deployment leads to: its settings and its Lease."""
    # Imported here because kopf takes longer than everything else.
    import kopf  # noqa: PLC0415

    from plimsoll.operator.leader import LeaseSettingError, lease_of  # noqa: PLC0415
    from plimsoll.operator.main import settings_of  # noqa: PLC0415

    if isinstance(facts.operators, Hidden):
        return {}
    if (operator := operator_of(facts)) is None:
        return {"settings": "there is no operator"}
    environment = environment_of(operator)
    try:
        settings, place = settings_of(environment), lease_of(environment)
    except (kopf.PermanentError, LeaseSettingError) as error:
        return {"settings": str(error)}
    if place is None:
        return {"settings": settings}
    namespace, name, _ = place
    lease = await _seen(_named(kube, _LEASE, name, namespace), f"get leases in namespace {namespace}", ())
    return {"settings": settings, "lease": lease}


def _is_available(volume: Object) -> bool:
    return bool((volume.get("status") or {}).get("phase") == "Available")
