"""A run's two programs as processes, started as in pods, at a real API server with the rights the operator gives."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from plimsoll.api.environment import Environment
from plimsoll.api.names import AbortReason, Outcome, RunPhase, Verdict
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.api.run import load_run
from plimsoll.api.status import STATE_FILE, RunState, TrialKey
from plimsoll.cli.launch import free_port
from plimsoll.conductor.secret import client_directory, write_session
from plimsoll.conductor.sink import CONFIG_MAP, RESULT, KubeSink, result_of
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import ForbiddenError
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import conductor as render
from plimsoll.lifecycle.run import run_of
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from plimsoll.protocol.assignment import Assignment, DataFile
from support.apiserver import ApiServer, account_config
from support.local_run import make_spec
from support.specs import SETTINGS

T = TypeVar("T")

pytestmark = [pytest.mark.crd, pytest.mark.timeout(180)]


class Programs:
    """The objects of a run, as the operator makes them, and the processes that its pods would run."""

    def __init__(self, apiserver: ApiServer, directory: Path, namespace: str) -> None:
        self.apiserver = apiserver
        self.directory = directory
        self.namespace = namespace
        self.plan = _plan(namespace)
        self.secret = directory / "secret"
        write_session(self.secret, self.plan.clients)
        (directory / "plan.json").write_text(self.plan.model_dump_json())
        self.port = free_port()
        self._processes = ExitStack()
        self._make_objects()
        self.kubeconfig = account_config(apiserver, directory, namespace, naming.conductor_account(self.plan.run.name))

    def _make_objects(self) -> None:
        name, namespace = self.plan.run.name, self.namespace
        body = make_spec() | {"metadata": {"name": name, "namespace": namespace, "uid": self.plan.run.uid}}
        body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        run = run_of(body, SETTINGS)
        self._post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        state = {
            "metadata": {"name": naming.state_config_map(name)},
            "data": {STATE_FILE: RunState().model_dump_json()},
        }
        self._post(f"/api/v1/namespaces/{namespace}/configmaps", state)
        for point in self.plan.points:
            result = result_of(self.plan, point, ResultStatus()).model_dump(mode="json", exclude={"status"})
            self._post(f"/apis/plimsoll.dev/v1alpha1/namespaces/{namespace}/benchmarkresults", result)
        rights = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        self._post(f"{rights}/roles", render.role(run, self.plan))
        self._post(f"{rights}/rolebindings", render.role_binding(run))

    def _post(self, path: str, document: dict[str, Any]) -> None:
        self.apiserver.request("POST", path, document).expect(201)

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self._processes.callback(_end, process)
        return process

    def conductor(self, epoch: str) -> "subprocess.Popen[str]":
        return self.start(
            "conductor",
            "--host=",
            f"--port={self.port}",
            f"--plan={self.directory / 'plan.json'}",
            f"--termination-log={self.directory / epoch}",
            PLIMSOLL_SECRET=str(self.secret),
            PLIMSOLL_NAMESPACE=self.namespace,
            PLIMSOLL_EPOCH=epoch,
            KUBECONFIG=self.kubeconfig,
        )

    def agent(self, client: int, fio: str, volume: DataFile | None = None) -> "subprocess.Popen[str]":
        assignment = Assignment(
            conductor=f"https://127.0.0.1:{self.port}",
            client=client,
            work=str(self.directory / f"work-{client}"),
            tools=("fio",),
            volume=volume,
            termination_log=str(self.directory / f"client-{client}"),
        )
        path = self.directory / f"assignment-{client}.json"
        path.write_text(assignment.model_dump_json())
        secret = client_directory(self.secret, client)
        options = (f"--assignment={path}", f"--secret={secret}", f"--fio={fio}")
        return self.start("agent", *options, PLIMSOLL_NODE=f"node-{client}")

    def state(self) -> RunState:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{naming.state_config_map(self.plan.run.name)}"
        return RunState.model_validate_json(self.apiserver.request("GET", path).expect(200)["data"][STATE_FILE])

    def status(self) -> dict[str, Any]:
        """Return the status of the first point's result."""
        name = naming.result(self.plan.run.name, self.plan.points[0].name)
        path = f"/apis/plimsoll.dev/v1alpha1/namespaces/{self.namespace}/benchmarkresults/{name}"
        status: dict[str, Any] = self.apiserver.request("GET", path).expect(200)["status"]
        return status

    def last_words(self, name: str) -> str:
        path = self.directory / name
        return path.read_text() if path.exists() else ""

    def close(self) -> None:
        self._processes.close()


def _plan(namespace: str) -> Plan:
    document = make_spec(prepare={"settleSeconds": 0}) | {"metadata": {"name": "r", "namespace": namespace}}
    run = load_run(yaml.safe_dump(document))
    named = run.model_copy(update={"metadata": run.metadata.model_copy(update={"uid": "u-1"})})
    return make_plan(named, seed=1)


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()


def wait_for(what: Callable[[], T | None], *, seconds: float = 60) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = what()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


@pytest.fixture
def programs(apiserver: ApiServer, tmp_path: Path, namespace: str) -> Iterator[Programs]:
    programs = Programs(apiserver, tmp_path, namespace)
    yield programs
    programs.close()


@pytest.mark.fault(
    "Conductor and clients",
    "The conductor is killed",
    "while measuring",
    ends="the agents keep their data sets; the trial is aborted (`ConductorRestarted`) and repeated, no other one is",
    within="as soon as the next conductor runs",
)
@pytest.mark.fio
@pytest.mark.system
def test_a_run_outlives_its_conductor(programs: Programs, fio: str, own_disk: Path) -> None:
    volumes = [own_disk / f"volume-{client}" for client in range(2)]
    for volume in volumes:
        volume.mkdir()
    first = programs.conductor("epoch-1")
    capacity = programs.plan.volume.size if programs.plan.volume else 0
    agents = [
        programs.agent(client, fio, DataFile(path=str(volume / "data"), capacity=capacity))
        for client, volume in enumerate(volumes)
    ]
    wait_for(lambda: (current := programs.state().current) is not None and time.time() > current.starts_at + 1)
    first.kill()
    second = programs.conductor("epoch-2")
    assert second.wait(timeout=90) == 0, second.communicate()
    assert [agent.wait(timeout=20) for agent in agents] == [0, 0]
    state, status = programs.state(), programs.status()
    assert (state.phase, state.epoch, state.trials_done) == (RunPhase.COMPLETE, "epoch-2", 2)
    assert status["final"] is True
    trials = [Trial.model_validate(trial) for trial in status["trials"]]
    assert [trial.abort.reason for trial in trials if trial.abort] == [AbortReason.CONDUCTOR_RESTARTED]
    assert [trial.epoch for trial in trials] == ["epoch-1", "epoch-2", "epoch-2"] or trials[0].abort
    # A machine that is busy elsewhere may cost a trial its validity, but never its record.
    counts = sum(trial.outcome is Outcome.MEASURED and trial.verdict is not Verdict.INVALID for trial in trials)
    assert sum(trial.outcome is Outcome.MEASURED for trial in trials) >= 2
    assert status["display"]["trials"] == f"{counts}/2"
    assert status["environment"]["nodes"] == ["node-0", "node-1"]
    assert status["verdict"] in {*Verdict}
    assert [programs.last_words(name) for name in ("epoch-2", "client-0", "client-1")] == ["", "", ""]


async def test_a_conductor_may_do_what_it_must_and_no_more(programs: Programs) -> None:
    plan, namespace = programs.plan, programs.namespace
    name = naming.result(plan.run.name, plan.points[0].name)
    async with AioKube(kubeconfig=programs.kubeconfig) as kube:
        sink = KubeSink(kube, plan, namespace)
        await sink.load()
        await sink.publish(RunState(epoch="e"))
        key = TrialKey(point=plan.points[0].name, pass_number=0, attempt=0)
        note: dict[str, Any] = {"passNumber": 0, "attempt": 0, "startedAt": "2026-01-01T00:00:00.000Z"}
        flight = RunState(epoch="e", in_flight=key, in_flight_since=note["startedAt"])
        for t0 in (0, 1_800_000_000_123_456_789):
            await sink.publish(flight.model_copy(update={"in_flight_t0_nanoseconds": t0}))
            assert programs.status()["inFlight"] == note | ({"t0Nanoseconds": t0} if t0 else {})
        for known in ({"old": 1, "both": 1}, {"both": 2}):
            await sink.record(plan.points[0].name, ResultStatus(environment=Environment.model_validate(known)))
        assert programs.status() == {
            "trials": [],
            "findings": [],
            "environment": {"both": 2},
            "final": False,
            "display": {"trials": "0/2"},
        }
        with pytest.raises(ForbiddenError):
            await kube.list(RESULT, namespace=namespace)
        with pytest.raises(ForbiddenError):
            await kube.get(CONFIG_MAP, "another", namespace)
        with pytest.raises(ForbiddenError):
            await kube.patch(RESULT, name, namespace, {"metadata": {"labels": {"x": "1"}}})
        with pytest.raises(ForbiddenError):
            await kube.delete(RESULT, name, namespace)


def test_a_conductor_without_its_objects_says_so(programs: Programs) -> None:
    name = naming.state_config_map(programs.plan.run.name)
    path = f"/api/v1/namespaces/{programs.namespace}/configmaps/{name}"
    programs.apiserver.request("DELETE", path).expect(200)
    process = programs.conductor("epoch-1")
    assert process.wait(timeout=30) == 1
    assert programs.last_words("epoch-1") == (
        f"get ConfigMap {programs.namespace}/{name}: it does not exist; the operator creates it before the conductor"
    )
