"""The command line against a real kube-apiserver: as kubectl plugin, with few rights, and watching a run."""

import asyncio
import signal
import uuid
from pathlib import Path

import pytest
import yaml

from plimsoll.api.status import RunState
from plimsoll.cli import Exit
from support.apiserver import ApiServer, Document
from support.command_line import GROUP, SECONDS, Bench, condition, line_with, measuring

pytestmark = pytest.mark.crd


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


# Namespace, context, names


def test_options_choose_file_context_and_namespace(bench: Bench) -> None:
    bench.record(1000)
    other = bench.config(namespace="elsewhere", context="other")
    options = ("--kubeconfig", other, "--context", "other", "-n", bench.namespace)
    done = bench.kubectl("results", "nightly", *options, config="/nowhere")
    assert done.returncode == 0, done.stderr
    assert "998" in done.stdout


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
    async with bench.running("watch", "nightly") as process:
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
        await line_with(process, "Cleanup: 2 Jobs are stopping")
        await line_with(process, f"Run {bench.namespace}/nightly ended: Valid: all 1 points are measured")
        assert await asyncio.wait_for(process.wait(), SECONDS) == 0


async def test_interrupted_watching_reports_that_the_run_continues(bench: Bench) -> None:
    async with bench.running("watch", "nightly") as process:
        await line_with(process, "not seen by the operator yet")
        process.send_signal(signal.SIGINT)
        await line_with(process, f"`kubectl plimsoll watch {bench.namespace}/nightly` follows it again")
        assert await asyncio.wait_for(process.wait(), SECONDS) == Exit.INTERRUPTED
