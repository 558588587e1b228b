"""What the command line meets: clusters and files with runs, results and suites."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from click.testing import CliRunner

from plimsoll.api.environment import Environment
from plimsoll.api.names import API_VERSION, RUN_KIND, SUITE_KIND, Operation, RunPhase
from plimsoll.api.result import BenchmarkResult, Fingerprint
from plimsoll.api.status import CurrentTrial, Live, LiveRate, RunState, TrialKey
from plimsoll.api.suite import decode_suite, load_suite
from plimsoll.cli import main
from plimsoll.cli.suite_rounds import RoundStart
from plimsoll.kube.connection import ApiClock
from plimsoll.kube.port import Kind
from plimsoll.suite.children import suite_digest, turns_by_name
from support.apiserver import CRDS, ApiServer, account_config, read_yaml
from support.fake_kube import FakeKube, Key, field_at
from support.results import result, steady, trials_of
from support.specs import manifest


class ConnectedKube(FakeKube):
    """A cluster as a connection to it: the API is the same at every connection."""

    connections = 0
    user = "somebody"
    clock = ApiClock()

    async def __aenter__(self) -> Self:
        self.connections += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def drop(self, kind: Kind, namespace: str, name: str) -> None:
        self._objects.pop(Key(kind, namespace, name))

    async def review(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**review, "status": {"allowed": True, "userInfo": {"username": self.user}}}

    async def table(self, kind: Kind, *, namespace: str, labels: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        found = await self.list(kind, namespace=namespace, labels=labels)
        return [{name: field_at(obj, path) for name, path in _result_columns().items()} for obj in found]


@cache
def _result_columns() -> dict[str, str]:
    """Return the columns of `kubectl get benchmarkresults`, and what each of them shows."""
    definition = read_yaml((CRDS / "benchmarkresults.plimsoll.dev.yaml").read_text())
    columns = definition["spec"]["versions"][0]["additionalPrinterColumns"]
    return {"Name": "metadata.name"} | {column["name"]: column["jsonPath"].lstrip(".") for column in columns}


def context_file(path: Path, *, current: str | None, contexts: Mapping[str, str | None]) -> str:
    """Write a kubeconfig with contexts, name -> namespace; returns its path."""
    entries = [
        {"name": name, "context": {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})}
        for name, namespace in contexts.items()
    ]
    document = {"apiVersion": "v1", "kind": "Config", "contexts": entries, "users": [], "clusters": []}
    path.write_text(yaml.safe_dump(document | ({"current-context": current} if current is not None else {})))
    return str(path)


Document = dict[str, Any]

GROUP = "/apis/plimsoll.dev/v1alpha1"
SECONDS = 60
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Bench:
    """A namespace with the run `nightly`, and the programs as installed; `uid` is the run's."""

    apiserver: ApiServer
    namespace: str
    directory: Path
    uid: str

    def path(self, plural: str, name: str = "", root: str = GROUP) -> str:
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def say(self, status: Document, plural: str = "benchmarkruns", name: str = "nightly") -> None:
        path = self.path(plural, f"{name}/status")
        self.apiserver.request("PATCH", path, {"status": status}, content=_MERGE).expect(200)

    def state(self, state: RunState) -> None:
        path = self.path("configmaps", "nightly-state", "/api/v1")
        data = {"data": {"state.json": state.model_dump_json()}}
        self.apiserver.request("PATCH", path, data, content=_MERGE).expect(200)

    def record(self, rate: int) -> None:
        one = result(trials_of(steady(rate)), run="nightly").model_dump(mode="json", exclude_none=True)
        one["metadata"] |= {"namespace": self.namespace, "labels": self.labels}
        one["spec"]["runUid"] = self.uid
        del one["status"]["fingerprint"]
        self.apiserver.request("POST", self.path("benchmarkresults"), one).expect(201)
        display = {"iops": f"{rate} ± 2", "trials": "5/5", "operation": "read", "p99": "5.00 ms"}
        self.say({**one["status"], "display": display}, "benchmarkresults", "nightly-w-000")

    @property
    def labels(self) -> dict[str, str]:
        return {"plimsoll.dev/run": "nightly", "plimsoll.dev/run-uid": self.uid}

    def config(self, *, namespace: str | None = None, context: str = "test") -> str:
        """Write an administrator's kubeconfig whose one context has a namespace; returns its path."""
        document = self.apiserver.kubeconfig()
        inside = document["contexts"][0]["context"] | ({"namespace": namespace} if namespace else {})
        document |= {"contexts": [{"name": context, "context": inside}], "current-context": context}
        path = self.directory / f"config-{context}-{namespace}"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    def may(self, *rules: Document) -> str:
        """Return the kubeconfig of an account that may do this in the namespace."""
        rights = self.path("", root="/apis/rbac.authorization.k8s.io/v1").rstrip("/")
        role = {"metadata": {"name": "viewer"}, "rules": [*rules]}
        subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": self.namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"}
        binding = {"metadata": {"name": "viewer"}, "roleRef": reference, "subjects": [subject]}
        self.apiserver.request("POST", f"{rights}/roles", role).expect(201)
        self.apiserver.request("POST", f"{rights}/rolebindings", binding).expect(201)
        return account_config(self.apiserver, self.directory, self.namespace, "viewer")

    def kubectl(self, *arguments: str, config: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(config),
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    def command(self, *arguments: str) -> list[str]:
        return [f"{os.environ['PLIMSOLL_KUBE_BINARIES']}/kubectl", "plimsoll", *arguments]

    def environment(self, config: str) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "KUBECONFIG": config, "PATH": path, "HOME": str(self.directory)}

    @asynccontextmanager
    async def running(self, *arguments: str) -> "AsyncIterator[asyncio.subprocess.Process]":
        """Run `kubectl plimsoll` while the test goes on."""
        process = await asyncio.create_subprocess_exec(
            *self.command(*arguments),
            env=self.environment(self.config(namespace=self.namespace)),
            cwd=self.directory,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def line_with(process: asyncio.subprocess.Process, words: str) -> str:
    assert process.stdout is not None
    passed = ""
    async with asyncio.timeout(SECONDS):
        while line := (await process.stdout.readline()).decode():
            if words in line:
                return line
            passed += line
    pytest.fail(f"no line with {words!r} in:\n{passed}")


def invoke(*arguments: object, code: int = 0, columns: int | str = 0) -> str:
    """Return what a command prints; it ends with this code."""
    found = CliRunner().invoke(main, [*map(str, arguments)], env={"COLUMNS": str(columns)} if columns else {})
    assert found.exit_code == code, found.output
    return found.output


UID = "1b671a64-40d5-491e-99b0-da01ff1f3341"
LABELS = {"plimsoll.dev/run": "nightly", "plimsoll.dev/run-uid": UID}


def condition(kind: str, status: str, message: str = "", reason: str = "Because") -> Document:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def run(*conditions: Document, status: str = "Measuring", message: str = "", **changes: Any) -> Document:
    """Return the document of a run that is `1/4` measured; `changes` of its status."""
    display = {"progress": "1/4", "status": status, "message": message, "workloads": "w"}
    points = {"total": 2, "completed": 0, "invalid": 0}
    parts = {"conditions": [*conditions], "points": points, "display": display, "somethingNew": True}
    return manifest(RUN_KIND, {}, name="nightly", namespace="bench", uid=UID) | {"status": parts | changes}


def ended(succeeded: bool = True, message: str = "all 2 points are measured") -> Document:  # noqa: FBT001, FBT002
    reason = "Valid" if succeeded else "InvalidResults"
    summary = condition("Succeeded", str(succeeded), message, reason)
    return run(summary, status=reason, message=message, completionTime="2026-01-31T12:00:00Z")


def config_map(state: RunState, **changes: Any) -> Document:
    document = json.loads(state.model_dump_json()) | changes
    metadata = {"name": "nightly-state", "namespace": "bench", "labels": LABELS}
    data = {"state.json": json.dumps(document)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def measuring(done: int = 1, *, attempt: int = 0, live: Live | None = None) -> RunState:
    """Return the state in which trial `done + 1` of four runs from second 1000 to 1060."""
    key = TrialKey(point="w-001", pass_number=0, attempt=attempt)
    current = CurrentTrial(key=key, label="randread 4Ki qd16", clients=(0, 1), starts_at=1000.0, ends_at=1060.0)
    return RunState(phase=RunPhase.MEASURING, current=current, live=live, trials_done=done, trials_total=4)


def live(clients: int = 2) -> Live:
    rates = (LiveRate(operation=Operation.READ, iops=12_345.6, bytes_per_second=50_568_192),)
    return Live(clients=clients, rates=rates)


SUITE_NAME, NAMESPACE, SUITE_UID = "weekly", "bench", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
MINUTE = 29_000_000
TIME = "2026-03-01T03:00:00Z"
RATES = (1000, 1006, 994)

SUITE_SPEC: Document = {
    "run": {
        "storage": {"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}},
        "workloads": [{"name": "w", "fio": {}}],
    },
    "variants": [{"name": "old"}, {"name": "new", "set": {"workloads": [{"name": "w", "fio": {"ioDepth": [2]}}]}}],
    "comparisons": [{"name": "upgrade", "baseline": {"rounds": "Accepted"}}],
    "hypotheses": [
        {
            "name": "alike",
            "left": {"variant": "new", "workload": "w", "quantity": "iops"},
            "of": {"variant": "old", "workload": "w", "quantity": "iops"},
            "atLeastPercent": 90,
        }
    ],
}


def ended_round(number: int, verdict: str = "NoRegression", cause: str = "Scheduled", **more: Any) -> Document:
    return {
        "minute": MINUTE + number,
        "cause": cause,
        "startTime": TIME,
        "completionTime": TIME,
        "verdict": verdict,
        "digest": suite_digest(decode_suite(suite()).spec),
        **more,
    }


def active_round(number: int, done: int = 0, current: str = "", cause: str = "Change") -> Document:
    """Return the entry of the active round, of six runs."""
    children = {"done": done, "total": 6}
    found = {"minute": MINUTE + number, "seed": 1, "cause": cause, "startTime": TIME, "children": children}
    return found | ({"current": current} if current else {})


def suite(*, request: str = "", generation: int = 1, **status: Any) -> Document:
    """Return the document of a suite; `status` are parts of its status."""
    metadata = {"name": SUITE_NAME, "namespace": NAMESPACE, "uid": SUITE_UID, "generation": generation}
    annotations = {"annotations": {"plimsoll.dev/request-round": request}} if request else {}
    parts = {"observedGeneration": 1, "display": {"status": "Idle", "message": "no round is due"}}
    return manifest(SUITE_KIND, SUITE_SPEC, **metadata, **annotations) | {"status": parts | status}


def suite_condition(kind: str, reason: str, message: str = "", status: str = "True") -> Document:
    return condition(kind, status, message, reason) | {"observedGeneration": 1, "lastTransitionTime": TIME}


def measured_runs(
    numbers: Sequence[int], scale: Mapping[int, float] | None = None, *, uid: str = SUITE_UID
) -> Iterator[Document]:
    """Yield the runs of rounds, each with its result; `scale` is the rate of a round as a part of the others'."""
    decoded = decode_suite(suite())
    for number in numbers:
        for name, turn in turns_by_name(decoded, minute=MINUTE + number, seed=1, uid=uid).items():
            yield owned_run(name, "True", uid)
            rate = RATES[turn.repeat] * (scale or {}).get(number, 1.0)
            document = result(trials_of(steady(rate)), run=name).model_dump(mode="json", exclude_none=True)
            document["metadata"] |= {"namespace": NAMESPACE, "labels": {"plimsoll.dev/run": name}}
            document["status"]["fingerprint"] |= dict.fromkeys(("identitySha256", "contextSha256"), "0" * 64)
            yield document


def owned_run(name: str, succeeded: str, uid: str = SUITE_UID) -> Document:
    owner = {"apiVersion": API_VERSION, "kind": SUITE_KIND, "name": SUITE_NAME, "uid": uid}
    metadata = {"namespace": NAMESPACE, "labels": {"plimsoll.dev/suite": SUITE_NAME}, "ownerReferences": [owner]}
    display = {"status": "Measuring", "progress": "3/12", "message": "trial 4"}
    status = {"conditions": [suite_condition("Succeeded", "Valid", status=succeeded)], "display": display}
    return manifest(RUN_KIND, {}, name=name, **metadata) | {"status": status}


COSTS = {"name": "costs", "baseline": {"variant": "old"}, "candidate": {"variant": "new"}}
COMPARISONS = [*SUITE_SPEC["comparisons"], COSTS]

WEEK = 7 * 24 * 60
"""Minutes."""


def written_round(
    path: Path, number: int, scale: Mapping[str, float], *, kernel: str = "6.1.0", node: str = "a", **spec: Any
) -> Path:
    """Write a round of a week, and return its directory; `scale` is the rate of each variant, by default 1."""
    directory = path / f"round-{number}"
    directory.mkdir()
    (directory / "suite.yaml").write_text(yaml.safe_dump(manifest(SUITE_KIND, SUITE_SPEC | spec, name="weekly")))
    suite = load_suite((directory / "suite.yaml").read_text())
    targets: dict[str, tuple[str, ...]] = {variant.name: ("/fast",) for variant in suite.spec.variants}
    start = RoundStart(minute=MINUTE + number * WEEK, seed=1, digest=suite_digest(suite.spec), targets=targets)
    (directory / "round.json").write_text(start.model_dump_json())
    for name, turn in turns_by_name(suite, minute=start.minute, seed=1).items():
        rate = RATES[turn.repeat % len(RATES)] * scale.get(turn.variant, 1.0)
        found = result(trials_of(steady(rate)), run=name)
        digests = dict.fromkeys(("identity_sha256", "context_sha256"), "0" * 64)
        fingerprint = Fingerprint(identity={}, context={"kernel": kernel}, **digests)
        environment = Environment.model_validate({"kernel": kernel, "nodes": [node]})
        status = found.status.model_copy(update={"fingerprint": fingerprint, "environment": environment})
        write_run(directory / name, [found.model_copy(update={"status": status})])
    return directory


def write_run(directory: Path, results: Iterable[BenchmarkResult]) -> None:
    """Write what a complete run leaves in its directory."""
    (directory / "results").mkdir(parents=True)
    for found in results:
        (directory / "results" / f"{found.spec.point}.json").write_text(found.model_dump_json())
    (directory / "state.json").write_text(RunState(phase=RunPhase.COMPLETE).model_dump_json())


def rounds_in(path: Path, slow: float = 0.8) -> list[str]:
    """Write five rounds: before the fourth one another kernel is installed, the last one is slow on another node."""
    found = [written_round(path, number, {}, comparisons=COMPARISONS) for number in range(3)]
    found.append(written_round(path, 3, {}, kernel="6.12.0", comparisons=COMPARISONS))
    scale = {"old": slow, "new": slow}
    found.append(written_round(path, 4, scale, kernel="6.12.0", node="b", comparisons=COMPARISONS))
    return [str(one) for one in found]
