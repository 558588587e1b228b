"""The command line against a real kube-apiserver: as kubectl plugin, with few rights, and watching a run."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from plimsoll.api.state import RunState
from support.accounts import account_config
from support.apiserver import ApiServer, Binaries, BinariesMissingError, Document, running_apiserver
from support.repeated import result, steady, trials_of
from support.watched import condition, measuring

pytestmark = pytest.mark.crd

ROOT = Path(__file__).parents[3]
GROUP = "/apis/plimsoll.dev/v1alpha1"
MERGE = "application/merge-patch+json"
SECONDS = 60


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    try:
        binaries = Binaries.find(os.environ)
    except BinariesMissingError as error:
        pytest.fail(str(error), pytrace=False)
    with running_apiserver(binaries, tmp_path_factory.mktemp("apiserver")) as server:
        for path in sorted((ROOT / "crds").glob("*.yaml")):
            server.define(yaml.safe_load(path.read_text()))
        yield server


@dataclass(frozen=True)
class Bench:
    """A namespace with the run `nightly`, and the programs as installed."""

    apiserver: ApiServer
    namespace: str
    directory: Path
    uid: str

    def path(self, plural: str, name: str = "", root: str = GROUP) -> str:
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def say(self, status: Document, plural: str = "benchmarkruns", name: str = "nightly") -> None:
        path = self.path(plural, f"{name}/status")
        self.apiserver.request("PATCH", path, {"status": status}, content=MERGE).expect(200)

    def state(self, state: RunState) -> None:
        """Say what the conductor does."""
        path = self.path("configmaps", "nightly-state", "/api/v1")
        data = {"data": {"state.json": state.model_dump_json()}}
        self.apiserver.request("PATCH", path, data, content=MERGE).expect(200)

    def record(self, rate: int) -> None:
        """Record the result of the run's point."""
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
        """Run `kubectl plimsoll`, as kubectl finds it."""
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
        """Return an environment in which kubectl finds its plugin."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "KUBECONFIG": config, "PATH": path, "HOME": str(self.directory)}

    @asynccontextmanager
    async def watching(self, *arguments: str) -> "AsyncIterator[asyncio.subprocess.Process]":
        process = await asyncio.create_subprocess_exec(
            *self.command("watch", "nightly", *arguments),
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


@pytest.fixture
def bench(apiserver: ApiServer, tmp_path: Path) -> Bench:
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).expect(201)
    document = yaml.safe_load((Path(__file__).parents[1] / "golden" / "plan-v1-quickstart.yaml").read_text())
    document["metadata"] = {"name": "nightly"}
    made = apiserver.request("POST", f"{GROUP}/namespaces/{namespace}/benchmarkruns", document).expect(201)
    found = Bench(apiserver=apiserver, namespace=namespace, directory=tmp_path, uid=made["metadata"]["uid"])
    metadata = {"name": "nightly-state", "labels": found.labels}
    data = {"state.json": RunState().model_dump_json()}
    state = {"metadata": metadata, "data": data}
    apiserver.request("POST", found.path("configmaps", root="/api/v1"), state).expect(201)
    return found


def status(progress: str, message: str, *conditions: Document, shown: str = "Measuring") -> Document:
    now = {"lastTransitionTime": "2026-01-31T12:00:00Z"}
    display = {"progress": progress, "status": shown, "message": message}
    return {"display": display, "conditions": [one | now for one in conditions]}


async def line_with(process: asyncio.subprocess.Process, words: str) -> str:
    """Return the next line that contains these words."""
    assert process.stdout is not None
    passed = ""
    async with asyncio.timeout(SECONDS):
        while line := (await process.stdout.readline()).decode():
            if words in line:
                return line
            passed += line
    pytest.fail(f"no line with {words!r} in:\n{passed}")


# Namespace, context, names


def test_bare_name_is_a_run_of_the_contexts_namespace(bench: Bench) -> None:
    bench.record(1000)
    (bench.directory / "nightly").mkdir()
    done = bench.kubectl("results", "nightly", "-o", "json", config=bench.config(namespace=bench.namespace))
    assert done.returncode == 0, done.stderr
    assert [one["spec"]["run"] for one in json.loads(done.stdout)] == ["nightly"]


def test_options_choose_file_context_and_namespace(bench: Bench) -> None:
    bench.record(1000)
    other = bench.config(namespace="elsewhere", context="other")
    options = ("--kubeconfig", other, "--context", "other", "-n", bench.namespace)
    done = bench.kubectl("results", "nightly", *options, config="/nowhere")
    assert done.returncode == 0, done.stderr
    assert "998" in done.stdout


def test_name_with_a_mistake_is_refused_with_the_right_one(bench: Bench) -> None:
    done = bench.kubectl("results", "nightli", config=bench.config(namespace=bench.namespace))
    assert done.returncode == 1
    assert f"no run nightli in namespace {bench.namespace} of context test; did you mean nightly?" in done.stderr


def test_plan_of_a_run_is_what_its_specification_says(bench: Bench) -> None:
    done = bench.kubectl("plan", "nightly", config=bench.config(namespace=bench.namespace))
    assert done.returncode == 0, done.stderr
    assert "Trials     12" in done.stdout
    assert "it has no plan yet" in done.stderr


def test_plugin_is_called_what_the_user_typed(bench: Bench) -> None:
    config = bench.config()
    assert "Usage: kubectl plimsoll results " in bench.kubectl("results", "--help", config=config).stdout
    assert bench.kubectl("--version", config=config).stdout.startswith("kubectl plimsoll, version ")


def test_api_server_that_is_away_is_named(bench: Bench) -> None:
    path = Path(bench.config())
    path.write_text(path.read_text().replace(f":{bench.apiserver.port}", ":9"))
    done = bench.kubectl("watch", "nightly", config=str(path))
    assert done.returncode == 1
    assert "is the API server of context test up, and reachable from here?" in done.stderr
    assert "Traceback" not in done.stderr


# Rights


def test_without_rights_the_role_to_ask_for_is_named(bench: Bench) -> None:
    config = bench.may()
    for command in ("results", "watch", "plan"):
        done = bench.kubectl(command, "nightly", "-n", bench.namespace, config=config)
        assert done.returncode == 1
        assert f'in API group "plimsoll.dev" in the namespace "{bench.namespace}"' in done.stderr
        assert "a RoleBinding to the ClusterRole plimsoll-view" in done.stderr


def test_rights_of_a_viewer_are_enough(bench: Bench) -> None:
    bench.record(1000)
    resources = ["benchmarkruns", "benchmarkresults"]
    rule = {"apiGroups": ["plimsoll.dev"], "resources": resources, "verbs": ["get", "list", "watch"]}
    config = bench.may(rule)
    bench.say(status("5/5", "measured", condition("Succeeded", "True", "measured", "Valid"), shown="Valid"))
    for command in ("results", "watch", "plan"):
        done = bench.kubectl(command, "nightly", "-n", bench.namespace, config=config)
        assert done.returncode == 0, done.stderr
    assert "no right to read its plan" in done.stderr


def test_unknown_credentials_are_named(bench: Bench) -> None:
    document = yaml.safe_load(Path(bench.config()).read_text())
    document["users"][0]["user"] = {"token": "nobody's"}
    path = bench.directory / "wrong"
    path.write_text(yaml.safe_dump(document))
    done = bench.kubectl("watch", "nightly", "-n", bench.namespace, config=str(path))
    assert done.returncode == 1
    assert "context test rejected these credentials" in done.stderr


# Watching


async def test_run_is_watched_to_its_end(bench: Bench) -> None:
    async with bench.watching() as process:
        await line_with(process, "not seen by the operator yet")
        bench.say(status("0/0", "PVC nightly-client-0 is Pending", shown="Provisioning"))
        await line_with(process, "Provisioning  PVC nightly-client-0 is Pending")
        bench.state(measuring(0))
        bench.say(status("0/5", "trial 1 of 5", condition("ClientsReady", "False", "client 1 is missing")))
        await line_with(process, "Measuring  0/4  trial 1 of 5")
        await line_with(process, "client 1 is missing")
        bench.record(1000)
        bench.say(status("5/5", "trial 5 of 5"))
        await line_with(process, "point w-000 (randread 4Ki qd1): 1000 ± 2 IOPS read, p99 5.00 ms, 5/5 trials, Valid")
        clean = condition("CleanedUp", "False", "2 Jobs are stopping")
        ended = condition("Succeeded", "True", "all 1 points are measured", "Valid")
        bench.say(status("5/5", "all 1 points are measured", ended, clean, shown="Valid"))
        await line_with(process, "IOPS ± 95 %")
        await line_with(process, f"Run {bench.namespace}/nightly succeeded: Valid: all 1 points are measured")
        await line_with(process, "Its objects are not all removed yet: 2 Jobs are stopping")
        assert await asyncio.wait_for(process.wait(), SECONDS) == 0


async def test_run_that_fails_ends_with_1(bench: Bench) -> None:
    async with bench.watching() as process:
        await line_with(process, "not seen by the operator yet")
        ended = condition("Succeeded", "False", "clients did not come", "ClientsNotReady")
        bench.say(status("0/5", "clients did not come", ended, shown="ClientsNotReady"))
        await line_with(process, "nightly did not succeed: ClientsNotReady: clients did not come")
        assert await asyncio.wait_for(process.wait(), SECONDS) == 1


async def test_run_that_is_deleted_ends_with_1(bench: Bench) -> None:
    async with bench.watching() as process:
        await line_with(process, "not seen by the operator yet")
        bench.apiserver.request("DELETE", bench.path("benchmarkruns", "nightly")).expect(200)
        await line_with(process, f"Error: run {bench.namespace}/nightly was deleted before it ended")
        assert await asyncio.wait_for(process.wait(), SECONDS) == 1


async def test_interrupted_watching_reports_that_the_run_continues(bench: Bench) -> None:
    async with bench.watching() as process:
        await line_with(process, "not seen by the operator yet")
        process.send_signal(signal.SIGINT)
        await line_with(
            process, f"nightly continues; `kubectl plimsoll watch {bench.namespace}/nightly` follows it again"
        )
        assert await asyncio.wait_for(process.wait(), SECONDS) == 3


async def test_watching_ends_after_the_timeout(bench: Bench) -> None:
    async with bench.watching("--timeout", "1s") as process:
        await line_with(process, "nightly continues;")
        assert await asyncio.wait_for(process.wait(), SECONDS) == 3
