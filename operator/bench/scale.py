"""The operator with thousands of finished runs: memory, requests, and how soon it works after a restart.

Operator, kube-apiserver and controllers are real, and so are the operator's rights. Nodes and conductors are simulated.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import Any

from figures import heading, mebibytes, plain, table, whole_seconds
from leader.operators import LEASE, AuditLog, OperatorProcess
from place import fresh, memory_bytes
from plimsoll.api.names import Operation, RunPhase
from plimsoll.api.status import STATE_FILE, Live, LiveRate, RunState
from plimsoll.lifecycle.naming import state_config_map
from support.apiserver import ApiServer
from support.served_world import OPERATOR_NAMESPACE, Installed, installed_world, path_of
from support.specs import document, suite_document, workload

FINISHED, ACTIVE, SUITES = 2000, 50, 100
_NAMESPACE = "scale"
_OPERATOR = f"system:serviceaccount:{OPERATOR_NAMESPACE}:plimsoll"
_CONNECTIONS = 4
_STATE_SECONDS = 3.0
_TRIAL_SECONDS = 60.0
_SETTLE_SECONDS = 30.0
_COUNTED_MINUTES = 2
_DEADLINE_SECONDS = 300.0
_POLL_SECONDS = 0.05
_MERGE = "application/merge-patch+json"

Document = dict[str, Any]


def measure() -> None:
    heading(
        f"scale: an operator with {FINISHED} finished runs, {ACTIVE} that measure, and {SUITES} suites",
        "A real kube-apiserver with real controllers; nodes and conductors are simulated. A finished run has a plan,\n"
        "   a state and a result. A conductor writes rates every 3 s and begins a trial every minute. Suites are\n"
        "   suspended. Requests are those in the audit log, without watches and the Lease. The operator was\n"
        "   stopped before; if it is killed, the next one leads when the Lease expires, usually 15 s later.",
    )
    directory = fresh("scale")
    with installed_world(directory, *AuditLog.options(directory)) as installed:
        _measure(installed)


def _measure(installed: Installed) -> None:
    world = installed.world
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    with _operator(installed, "first") as (operator, _):
        _await(lambda: operator.leads, "the operator leads")
        empty = memory_bytes(operator.pid, "VmRSS")
        _create_run(installed, "original")
        world.until_condition(_NAMESPACE, "original", "CleanedUp", status="True")
        world.conductors.knobs.stays = RunPhase.MEASURING
        active = [f"active-{number}" for number in range(ACTIVE)]
        for name in active:
            _create_run(installed, name)
        for name in active:
            world.until_phase(_NAMESPACE, name, RunPhase.MEASURING)
    begun = time.monotonic()
    _create_finished(world.api)
    print(f"   created {FINISHED} finished runs and {SUITES} suites in {time.monotonic() - begun:.0f} s", flush=True)
    begun = time.monotonic()
    with _operator(installed, "second") as (operator, audit), _conductors(world.api, active):
        _await(lambda: operator.is_ready, "the operator is ready")
        ready = time.monotonic()
        _create_run(installed, "new")
        condition = partial(world.condition, _NAMESPACE, "new", "Admitted")
        _await(lambda: condition().get("status") == "True", "the new run is admitted")
        admitted = time.monotonic()
        world.api.request("DELETE", path_of("BenchmarkRun", _NAMESPACE, "new")).expect(200)
        time.sleep(_SETTLE_SECONDS)
        start = _requests(audit)
        later = AuditLog(installed.directory)
        time.sleep(60 * _COUNTED_MINUTES)
        steady = _requests(later)
        resident, peak = (memory_bytes(operator.pid, field) for field in ("VmRSS", "VmHWM"))
    rate = steady.total() / _COUNTED_MINUTES / ACTIVE
    table(
        ("quantity", "measured", "aim"),
        [
            ("restart to ready", whole_seconds(ready - begun), "15 s"),
            ("ready to a new run's admission", whole_seconds(admitted - ready), "5 s"),
            ("memory without any run", mebibytes(empty), ""),
            (f"memory {_SETTLE_SECONDS + 60 * _COUNTED_MINUTES:.0f} s later", mebibytes(resident), "250 MiB"),
            ("most memory", mebibytes(peak), ""),
            ("requests per minute and active run", plain(1)(rate), "20"),
            (f"requests in the first {admitted - begun + _SETTLE_SECONDS:.0f} s", str(start.total()), ""),
        ],
    )
    for title, requests in (
        (f"the first {_SETTLE_SECONDS:.0f} s", start),
        (f"{_COUNTED_MINUTES} minutes later", steady),
    ):
        print(f"   requests in {title}: {', '.join(f'{number} {what}' for what, number in requests.most_common(12))}")


@contextmanager
def _operator(installed: Installed, name: str) -> Iterator[tuple[OperatorProcess, AuditLog]]:
    """Run an operator, and count its requests."""
    audit = AuditLog(installed.directory)
    kubeconfig = installed.kubeconfig(installed.directory / f"{name}.kubeconfig")
    # A Lease that also lasts on a busy machine: an operator that loses it exits.
    lease = {"PLIMSOLL_LEASE": LEASE, "PLIMSOLL_LEASE_SECONDS": "120"}
    environment = {**installed.environment, **lease, "POD_NAME": name}
    process = OperatorProcess(kubeconfig, installed.directory / f"{name}.log", environment)
    try:
        yield process, audit
        process.stop()
        assert process.wait(60) == 0, process.log()[-2000:]
    finally:
        process.kill()


def _create_run(installed: Installed, name: str) -> None:
    """Create a run on a StorageClass of its own, so that it waits for no other run."""
    installed.world.make_storage_class(name)
    storage = {"storageClass": {"name": name}, "volume": {"size": "64Mi", "mode": "Filesystem"}}
    load = workload(runtimeSeconds=60)
    run = document(storage=storage, workloads=[load], repetitions=3, prepare={"settleSeconds": 0})
    installed.world.create(run | {"metadata": {"name": name, "namespace": _NAMESPACE}})


def _create_finished(api: ApiServer) -> None:
    """Copy the finished run, with everything that outlives its end, and create suites that start no round."""
    template = api.request("GET", path_of("BenchmarkRun", _NAMESPACE, "original")).expect(200)
    uid = template["metadata"]["uid"]
    objects = [
        {**obj, "kind": kind}
        for kind in ("ConfigMap", "BenchmarkResult")
        for obj in api.request("GET", path_of(kind, _NAMESPACE)).expect(200)["items"]
        if obj["metadata"].get("labels", {}).get("plimsoll.dev/run-uid") == uid
    ]
    assert len(objects) == 3, [obj["metadata"]["name"] for obj in objects]

    def create_part(first: int) -> None:
        # The admission policies reserve labels and names of objects for the operator, and refuse it a run.
        with closing(api.as_user("")) as user, closing(api.as_user(_OPERATOR)) as operator:
            for number in range(first, FINISHED, _CONNECTIONS):
                name = f"finished-{number:04}"
                run = _copy(template | {"kind": "BenchmarkRun"}, {"original": name}, user, user)
                for obj in objects:
                    _copy(obj, {uid: run["metadata"]["uid"], "original": name}, operator, user)

    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        list(threads.map(create_part, range(_CONNECTIONS)))
    for number in range(SUITES):
        suite = suite_document(f"suite-{number:03}", suspend=True)
        api.request("POST", path_of("BenchmarkSuite", _NAMESPACE), suite).expect(201)


def _copy(obj: Document, renamed: Mapping[str, str], creator: ApiServer, user: ApiServer) -> Document:
    """Create a copy of an object under another name, have the user write its status, and return it."""
    text = json.dumps(obj)
    for before, after in renamed.items():
        text = text.replace(before, after)
    copy = json.loads(text)
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    copy["metadata"] = {key: value for key, value in copy["metadata"].items() if key in kept}
    created = creator.request("POST", path_of(obj["kind"], _NAMESPACE), copy).expect(201)
    if "status" in copy:
        path = f"{path_of(obj['kind'], _NAMESPACE, copy['metadata']['name'])}/status"
        user.request("PATCH", path, {"status": copy["status"]}, content=_MERGE).expect(200)
    return created


@contextmanager
def _conductors(api: ApiServer, runs: list[str]) -> Iterator[None]:
    """Write what the conductors of these runs write while they measure."""
    stopped = Event()

    def write() -> None:
        with closing(api.as_user("")) as client:
            states = {run: _state(client, run) for run in runs}
            for number in count():
                for place, (run, state) in enumerate(states.items()):
                    if stopped.wait(_STATE_SECONDS / len(runs)):
                        return
                    # The runs' trials begin one after the other, as they would.
                    trials = int((number * _STATE_SECONDS + _TRIAL_SECONDS * place / len(runs)) / _TRIAL_SECONDS)
                    rate = LiveRate(operation=Operation.READ, iops=1000.0 + number, bytes_per_second=4096 * number)
                    live = Live(clients=2, rates=(rate,))
                    text = state.model_copy(update={"live": live, "trials_done": trials}).model_dump_json()
                    path = path_of("ConfigMap", _NAMESPACE, state_config_map(run))
                    client.request("PATCH", path, {"data": {STATE_FILE: text}}, content=_MERGE).expect(200)

    thread = Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _state(api: ApiServer, run: str) -> RunState:
    obj = api.request("GET", path_of("ConfigMap", _NAMESPACE, state_config_map(run))).expect(200)
    return RunState.model_validate_json(obj["data"][STATE_FILE])


def _requests(audit: AuditLog) -> Counter[str]:
    """Return how often the operator asked for what."""
    return Counter(
        f"{entry['verb']} {'/'.join(filter(None, (reference.get('resource'), reference.get('subresource'))))}"
        for entry in audit.entries()
        for reference in [entry.get("objectRef") or {"resource": entry["requestURI"]}]
        if entry["verb"] != "watch" and reference.get("resource") != "leases"
    )


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {_DEADLINE_SECONDS:g} s: {what}"
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    measure()
