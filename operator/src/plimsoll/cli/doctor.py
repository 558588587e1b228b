"""`plimsoll doctor`: what works in a cluster or on this machine, and how to fix what does not."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from pydantic import JsonValue

from plimsoll import __version__
from plimsoll.agent.observation import host_facts, identify, volume_facts
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import ALIGNMENT, FileVolume, available_bytes, device_size
from plimsoll.api.names import API_VERSION, GROUP, RUN_KIND, Verdict
from plimsoll.cli import Exit, diagnosis
from plimsoll.cli.cluster import access, ask, cluster_options, given
from plimsoll.cli.cluster_run import Load, generated_run
from plimsoll.cli.diagnosis import Facts, Finding, Hidden, State, judged
from plimsoll.cli.local_storage import Target
from plimsoll.cli.options import TABLE, document_option, fio_option, storage_class_option, write_document
from plimsoll.cli.tables import Terminal, fitted, print_line
from plimsoll.kube.port import (
    ApiError,
    ForbiddenError,
    Kind,
    NotFoundError,
    Object,
    TransientError,
    UnknownKindError,
)
from plimsoll.lifecycle.ceph.rook_render import API_VERSION as ROOK_VERSION
from plimsoll.lifecycle.ceph.rook_render import CEPH_CLUSTER
from plimsoll.lifecycle.render.common import OSD_LABELS
from plimsoll.measure.checks.documents import FIO_REPORTS_START
from plimsoll.measure.checks.hosts import node_cpu_saturated
from plimsoll.measure.text import percent_text, size_text
from plimsoll.report.view import NONE, Column
from plimsoll.tools.fio.command import target_arguments
from plimsoll.tools.fio.parameters import Engine
from plimsoll.tools.target import VolumeKind, VolumeTarget

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube

_LEASE = Kind(api_version="coordination.k8s.io/v1", kind="Lease")
_SECONDS = 10.0  # for each answer
_PROGRAM_SECONDS = 20
_LOOK_SECONDS = 1.0  # in which the load of the CPUs is observed
_PACKAGES = {"setpriv": "util-linux", "blkid": "util-linux", "dd": "coreutils"}
_NAMESPACE = Kind(api_version="v1", kind="Namespace")
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
@storage_class_option("Check only this class, and whether a run can use it.")
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
    clusters and StorageClasses, Pod Security, quotas, nodes and clocks. It changes nothing. A check that
    you have no right to make is `unknown`, and names the right that it needs.

    With --directory or --device it checks this machine: fio, direct I/O, free space or the device, CPUs and load. It
    writes one MiB to the directory, and only reads devices.

    Exits with 1 if something does not work. Below the table are the remedies, which are commands or values of the
    chart, and last what a run can measure.
    """
    if directory is not None or devices:
        if directory is not None and devices:
            raise click.UsageError("--directory and --device cannot be combined; check them one after the other")
        if storage_class is not None or any(map(given, ("namespace", "context", "kubeconfig"))):
            raise click.UsageError("--directory and --device are for this machine; leave out the options of a cluster")
        findings = [*check_machine(Target(directory=directory, devices=devices), fio)]
    else:
        where = access()
        facts = ask(where, lambda kube: _gather(kube, where.namespace, storage_class))
        findings = [*diagnosis.diagnose(facts)]
    if output == TABLE:
        console = Terminal()
        console.print(fitted(_COLUMNS, findings))
        # Each on a line of its own, however long, so that it can be pasted.
        for finding in filter(lambda finding: finding.fix, findings):
            print_line(console, f"\n{finding.check}:\n  {finding.fix}")
        print_line(console, f"\n{diagnosis.conclusion(findings)}")
    else:
        write_document([asdict(finding) for finding in findings], output)
    sys.exit(Exit.ERROR if any(finding.state is State.PROBLEM for finding in findings) else Exit.DONE)


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
        "volumes": listed(
            "v1", "PersistentVolume", keep=lambda volume: (volume.get("status") or {}).get("phase") == "Available"
        ),
        "quotas": listed("v1", "ResourceQuota", namespace),
        "nodes": listed("v1", "Node"),
        "node_leases": listed(_LEASE.api_version, _LEASE.kind, "kube-node-lease"),
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
    facts = replace(facts, refusal=await _refusal(kube, facts), **await _operator_facts(kube, facts))
    return replace(facts, pod_refusal=await _pod_refusal(kube, facts))


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

    return [kind for kind in diagnosis.KINDS if not await is_served(kind)]


async def _may(kube: "AioKube", namespace: str, verb: str, resource: str, group: str = GROUP) -> bool:
    attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    answer = await kube.review({**kind, "spec": {"resourceAttributes": attributes}})
    return bool(answer["status"]["allowed"])


async def _rights(kube: "AioKube", namespace: str) -> Mapping[tuple[str, str], bool]:
    wanted = [right for rights in diagnosis.RIGHTS.values() for right in rights]
    return dict(zip(wanted, await asyncio.gather(*(_may(kube, namespace, *right) for right in wanted)), strict=True))


async def _refusal(kube: "AioKube", facts: Facts) -> str | Hidden:
    if isinstance(facts.rights, Hidden) or facts.unserved or not facts.rights["create", "benchmarkruns"]:
        return Hidden(f"needs create benchmarkruns in namespace {facts.namespace}")
    run = generated_run(facts.storage_class or "any", Load())
    run["metadata"]["namespace"] = facts.namespace
    return await _dry_run(kube, run)


async def _pod_refusal(kube: "AioKube", facts: Facts) -> str | Hidden:
    """Return why quotas, LimitRanges, Pod Security or webhooks would refuse a client's pod."""
    if (pod := diagnosis.client_pod(facts)) is None:
        return Hidden("the operator's settings permit no run with that StorageClass")
    if await _seen(_may(kube, facts.namespace, "create", "pods", ""), "", None) is not True:
        return Hidden(f"needs create pods in namespace {facts.namespace}")
    return await _dry_run(kube, pod)


async def _dry_run(kube: "AioKube", obj: Object) -> str | Hidden:
    """Return why the API server would refuse to create the object, empty if it would not."""
    try:
        await kube.create(obj, dry_run=True)
    except ApiError as error:
        # A webhook that does not answer refuses every such object.
        is_unknown = isinstance(error, TransientError | NotFoundError) and "webhook" not in error.reason
        return Hidden(error.reason) if is_unknown else error.reason
    return ""


async def _operator_facts(kube: "AioKube", facts: Facts) -> Mapping[str, Any]:
    """Return what the operator's Deployment leads to: its settings and its Lease."""
    # Imported here because kopf takes longer than everything else.
    import kopf  # noqa: PLC0415

    from plimsoll.operator.leader import LeaseSettingError, lease_of  # noqa: PLC0415
    from plimsoll.operator.main import settings_of  # noqa: PLC0415

    if isinstance(facts.operators, Hidden):
        return {"settings": facts.operators}
    if (operator := diagnosis.operator_of(facts)) is None:
        return {"settings": "there is no operator"}
    environment = diagnosis.environment_of(operator)
    try:
        settings, place = settings_of(environment), lease_of(environment)
    except (kopf.PermanentError, LeaseSettingError) as error:
        return {"settings": str(error)}
    if place is None:
        return {"settings": settings}
    namespace, name, _ = place
    lease = await _seen(_named(kube, _LEASE, name, namespace), f"get leases in namespace {namespace}", ())
    return {"settings": settings, "lease": lease}


# This machine


def check_machine(target: Target, fio: str) -> Iterator[Finding]:
    """Yield the lines. A directory gets a file of one MiB, which is removed; devices are only read."""
    host, program = Host(), shutil.which(fio)
    yield judge_fio(fio, _words([program, "--version"])[1] if program else None)
    for name in ("setpriv", *(["blkid"] if target.devices else [])):
        if shutil.which(name) is None:
            yield judged(f"{name} is missing", "", _install(name), check=name)
    try:
        with target.claimed("doctor"):
            for path in target.paths:
                yield from _directory(path, program, host) if target.directory else _device(path, program)
    except (click.ClickException, OSError) as error:
        problem, _, fix = str(getattr(error, "message", error)).partition("; ")
        yield judged(problem, "", fix, check="Target")
    yield from judge_host(host_facts(host), busy=_busy_part(host), load=os.getloadavg()[0])


def judge_fio(fio: str, printed: str | None) -> Finding:
    """Judge the output of `fio --version`, None if there is no such program."""
    number = re.search(r"fio-(\d+)\.(\d+)", printed or "")
    if printed is None or number is None:
        problem = f"{fio} cannot be run{f': {printed}' if printed else ''}"
        return judged(problem, "", f"{_install('fio')}   # or name another with --fio", check="fio")
    oldest = ".".join(map(str, FIO_REPORTS_START))
    is_old = (int(number[1]), int(number[2])) < FIO_REPORTS_START
    problem = f"{number[0]} does not report when it begins to measure: results are at most Suspect (ToolTooOld)"
    return judged(
        problem if is_old else "", number[0], f"install fio {oldest} or later, or name it with --fio", check="fio"
    )


def judge_host(facts: Mapping[str, JsonValue], *, busy: float, load: float) -> Iterator[Finding]:
    """Judge a machine whose CPUs were `busy` for that part of the time."""
    governor = facts.get("cpuGovernor")
    slow = governor not in {None, "performance"}
    text = f"{facts.get('processors')} x {facts.get('cpuModel') or facts.get('architecture')}"
    text += f", governor {governor}" if governor else ""
    fix = "cpupower frequency-set --governor performance   # for steadier latencies" if slow else ""
    yield Finding(State.OK, text, fix, check="CPUs")
    text = f"the CPUs are busy for {percent_text(100 * busy)} of the time, load average {load:.1f}"
    problem = f"{text}: results would be Suspect (NodeCpuSaturated)" if node_cpu_saturated.fails(100 * busy) else ""
    yield judged(problem, text, "stop other programs; `top` shows them", check="Load")


def judge_engine(engine: Engine, problem: str) -> Finding:
    if problem and engine is not Engine.LIBAIO:
        return Finding(State.UNUSED, f"not usable here: {problem}", check=f"Engine {engine}")
    fix = "use storage that supports direct I/O, and a fio that was built with libaio"
    return judged(
        f"fio cannot read with it: {problem}" if problem else "", "direct reads work", fix, check=f"Engine {engine}"
    )


def _directory(directory: Path, program: str | None, host: Host) -> Iterator[Finding]:
    facts, free = volume_facts(FileVolume(path=directory / "data"), host), available_bytes(directory, 0)
    kind, source = facts.get("volumeFileSystem", "unknown file system"), facts.get("volumeSource")
    problem = "" if free >= ALIGNMENT else f"{directory} has {free} bytes free; a data set needs at least 1 MiB"
    yield judged(
        problem, f"{directory}: {kind} of {source}, {size_text(free)} free", "free some space", check="Directory"
    )
    with tempfile.TemporaryDirectory(prefix="plimsoll-doctor-", dir=directory) as place:
        target = VolumeTarget(kind=VolumeKind.FILE, path=f"{place}/client-0.data", size=ALIGNMENT)
        Path(target.path).write_bytes(os.urandom(target.size))
        yield from _reads(target, program)
        has_device = identify(target).block_device is not None
    problem = "" if has_device else f"{kind} shows no block device: direct I/O is Suspect here (CacheNotExcluded)"
    yield judged(
        problem, f"{kind} is on a block device", "use a directory on a disk, or --device", check="Block device"
    )


def _device(device: Path, program: str | None) -> Iterator[Finding]:
    yield Finding(State.OK, f"{device}: without data, {size_text(device_size(device))}", check="Device")
    yield from _reads(VolumeTarget(kind=VolumeKind.DEVICE, path=str(device), size=ALIGNMENT), program)


def _reads(target: VolumeTarget, program: str | None) -> Iterator[Finding]:
    """Open the data set with O_DIRECT, and have fio read from it as in a run."""
    problem = ""
    try:
        os.close(os.open(target.path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        problem = f"{target.path} cannot be opened with O_DIRECT: {error.strerror}"
    yield judged(problem, "O_DIRECT works", "use a file system that supports it, or --device", check="Direct I/O")
    for engine in (Engine.LIBAIO, Engine.IO_URING) if program and not problem else ():
        options = ("--name=doctor", "--readonly", "--rw=randread", "--bs=4k", "--size=1M", "--number_ios=16")
        code, words = _words([program or "", *options, *target_arguments(target, engine)])
        yield judge_engine(engine, words.partition("\n")[0] or f"exit code {code}" if code else "")


def _words(command: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PROGRAM_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return 1, f"no answer within {_PROGRAM_SECONDS} s"
    except OSError as error:
        return 1, str(error)
    return done.returncode, (done.stderr if done.returncode else done.stdout).strip()


def _busy_part(host: Host) -> float:
    before = host.snapshot(cgroup=None, device=None)
    time.sleep(_LOOK_SECONDS)
    after = host.snapshot(cgroup=None, device=None)
    if before is None or after is None:
        return 0.0
    busy, idle = after.busy - before.busy, max(0, after.idle - before.idle)
    return busy / (busy + idle) if busy + idle else 0.0


def _install(program: str) -> str:
    return f"apt-get install {_PACKAGES.get(program, program)}"
