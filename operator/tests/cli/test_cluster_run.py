"""`plimsoll run` in a cluster: what it asks, creates, follows and removes."""

import os
import signal
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from plimsoll.cli import Exit, main
from plimsoll.cli.source import RUN, SUITE
from plimsoll.kube.port import ForbiddenError
from plimsoll.suite.rounds.turns import REQUEST_ROUND
from support.command_line import NAMESPACE, SUITE_SPEC, ConnectedKube, Document, condition, invoke
from support.specs import manifest

QUICK = ("run", "--storage-class", "fast.ssd", "-n", NAMESPACE)
SPEC = {
    "storage": {"storageClass": {"name": "fast.ssd"}, "volume": {"size": "10Gi"}},
    "clients": {"count": 3},
    "workloads": [
        {
            "name": "randwrite",
            "fio": {"pattern": "randwrite", "blockSize": ["4Ki", "1Mi"], "ioDepth": [16]},
            "runtimeSeconds": 60,
            "rampSeconds": 10,
        }
    ],
    "repetitions": 3,
    "prepare": {"settleSeconds": 2},
}
OPTIONS = ["--pattern=randwrite", "--block-size=4Ki", "--block-size=1Mi", "--clients=3", "--size=10Gi", "--runtime=1m"]


@pytest.fixture
def kube(connected: ConnectedKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConnectedKube:
    monkeypatch.chdir(tmp_path)
    for name, kind in (("run", "BenchmarkRun"), ("suite", "BenchmarkSuite")):
        spec = SUITE_SPEC["run"] if name == "run" else SUITE_SPEC
        Path(f"{name}.yaml").write_text(yaml.safe_dump(manifest(kind, spec, name="nightly")))
    connected.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return connected


@pytest.fixture
def ending(kube: ConnectedKube) -> ConnectedKube:
    """Return a cluster whose runs end at once."""

    def interfere(request: str) -> None:
        for run in kube.objects("BenchmarkRun") if request.startswith("get BenchmarkRun") else ():
            kube.put({**run, "status": {"conditions": [condition("Succeeded", "True", "all measured", "Valid")]}})

    kube.interfere = interfere
    return kube


def created(kube: ConnectedKube) -> list[Document]:
    return [*kube.objects("BenchmarkRun"), *kube.objects("BenchmarkSuite")]


def test_one_command_measures_a_storage_class_and_leaves_nothing(ending: ConnectedKube) -> None:
    output = invoke(*QUICK, *OPTIONS, "--dry-run", code=Exit.DONE)
    assert yaml.safe_load(output)["spec"] == SPEC
    assert ending.requests == []
    Path("same.yaml").write_text(output)
    plan = invoke("plan", "same.yaml", code=Exit.DONE).splitlines()

    lines = invoke(*QUICK, *OPTIONS, "--yes", "--rm", code=Exit.DONE).splitlines()
    facts = [" ".join(line.split()) for line in (*lines[:3], lines[4])]
    assert facts[:3] == ["Cluster context here", f"Namespace {NAMESPACE}", "Target storageClass/fast.ssd"]
    assert facts[3] in [" ".join(line.split()) for line in plan]
    assert facts[3].startswith("Writing 24 GiB to prefill and about 123 GiB in trials")
    name = lines[5].split()[1]
    assert name.startswith(f"{NAMESPACE}/fast-ssd-"), lines
    assert lines[6:][-2:] == [f"Run {name} ended: Valid: all measured", f"Run {name} removed"]
    assert [f"{verb} BenchmarkRun {name}" in ending.requests for verb in ("create", "delete")] == [True, True]
    assert created(ending) == []


def test_a_run_is_kept_without_rm(ending: ConnectedKube) -> None:
    invoke(*QUICK, "--yes", code=Exit.DONE)
    assert len(created(ending)) == 1


@pytest.mark.parametrize(
    ("answer", "code", "count"), [("y\n", Exit.DONE, 1), ("n\n", Exit.INTERRUPTED, 0), ("", Exit.INTERRUPTED, 0)]
)
def test_a_terminal_asks(
    ending: ConnectedKube, monkeypatch: pytest.MonkeyPatch, answer: str, code: Exit, count: int
) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda stream: stream.name == "<stdin>")
    done = CliRunner().invoke(main, [*QUICK], input=answer)
    assert (done.exit_code, len(created(ending))) == (code, count), done.output
    assert done.output.index("to prefill") < done.output.index("Create it?")


@pytest.mark.parametrize(("options", "namespace"), [([], None), (["-n", NAMESPACE], NAMESPACE)])
def test_a_dry_run_needs_no_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], namespace: str | None
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    output = invoke("run", "--storage-class", "fast", "--dry-run", *options, code=Exit.DONE)
    assert yaml.safe_load(output)["metadata"].get("namespace") == namespace


def test_without_a_terminal_the_confirmation_is_an_option(kube: ConnectedKube) -> None:
    assert "there is no terminal to ask for a confirmation; add --yes" in invoke(*QUICK, code=Exit.USAGE)
    assert kube.requests == []


def test_a_file_is_created_as_it_is_in_the_chosen_namespace(ending: ConnectedKube) -> None:
    invoke("run", "run.yaml", "--yes", "-n", NAMESPACE, code=Exit.DONE)
    (run,) = created(ending)
    assert (run["metadata"]["name"], run["metadata"]["namespace"]) == ("nightly", NAMESPACE)
    assert run["spec"] == SUITE_SPEC["run"]
    Path("elsewhere.yaml").write_text(yaml.safe_dump(manifest("BenchmarkRun", SPEC, name="n", namespace="other")))
    refused = invoke("run", "elsewhere.yaml", "--yes", "-n", NAMESPACE, code=Exit.USAGE)
    assert f"--namespace is {NAMESPACE}, but metadata.namespace of elsewhere.yaml is other" in refused


@pytest.mark.parametrize(("file", "kind"), [("run.yaml", "benchmarkrun"), ("suite.yaml", "benchmarksuite")])
def test_what_continues_can_be_stopped(kube: ConnectedKube, file: str, kind: str) -> None:
    options = ("run", file, "--yes", "--rm", "-n", NAMESPACE, "--context", "here")
    stop = f"`kubectl delete {kind} nightly --namespace {NAMESPACE} --context here` stops and removes it"
    assert invoke(*options, "--timeout", "1s", code=Exit.TIMEOUT).splitlines()[-1] == stop
    (stored,) = created(kube)
    kube.drop(SUITE if "suite" in kind else RUN, NAMESPACE, stored["metadata"]["name"])

    def interrupt(request: str) -> None:
        # The second request, after the UID was read.
        if kube.requests.count(request) > 2:
            os.kill(os.getpid(), signal.SIGINT)

    kube.requests.clear()
    kube.interfere = interrupt
    lines = invoke(*options, code=Exit.INTERRUPTED).splitlines()
    assert "follows it again" in lines[-2]
    assert lines[-1] == stop
    assert len(created(kube)) == 1


@pytest.mark.parametrize(
    ("file", "remedy"),
    [
        ("run.yaml", "a run measures once; choose another metadata.name"),
        ("suite.yaml", f"run bsuite/{NAMESPACE}/nightly` requests another round"),
    ],
)
def test_a_name_that_is_taken_is_refused(kube: ConnectedKube, file: str, remedy: str) -> None:
    options = ("run", file, "--yes", "-n", NAMESPACE)
    invoke(*options, "--timeout", "1s", code=Exit.TIMEOUT)
    assert remedy in invoke(*options, code=Exit.ERROR)


def test_a_removal_that_is_blocked_says_so(ending: ConnectedKube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.cli.cluster_run._REMOVAL_SECONDS", 1)
    document = manifest("BenchmarkRun", SUITE_SPEC["run"], name="kept", finalizers=["example.org/keep"])
    Path("kept.yaml").write_text(yaml.safe_dump(document))
    output = invoke("run", "kept.yaml", "--yes", "--rm", code=Exit.ERROR)
    assert "run default/kept is still being removed after 1 s; its condition CleanedUp shows why" in output
    assert "`kubectl delete benchmarkrun kept --namespace default` removes it" in output


def test_the_name_of_a_run_begins_with_a_letter(kube: ConnectedKube) -> None:
    invoke("run", "--storage-class", "3par.gold", "--yes", "--timeout", "1s", code=Exit.TIMEOUT)
    (run,) = created(kube)
    assert run["metadata"]["name"].startswith("run-3par-gold-")


def test_without_the_right_to_create_the_role_is_named(kube: ConnectedKube) -> None:
    def refuse(request: str) -> None:
        raise ForbiddenError(request, "no")

    kube.interfere = refuse
    assert "ClusterRole plimsoll-edit, or to edit, which includes it" in invoke(*QUICK, "--yes", code=Exit.ERROR)


def test_whoever_may_not_read_what_he_created_learns_how_to_stop_it(kube: ConnectedKube) -> None:
    def refuse(request: str) -> None:
        if request.startswith("get "):
            raise ForbiddenError(request, "no")

    kube.interfere = refuse
    lines = invoke("run", "run.yaml", "--yes", "-n", NAMESPACE, code=Exit.ERROR).splitlines()
    assert len(created(kube)) == 1
    assert f"`kubectl delete benchmarkrun nightly --namespace {NAMESPACE}` stops and removes it" in lines


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("", Exit.USAGE, "nothing to measure; give a FILE, or --storage-class NAME"),
        ("run.yaml --storage-class fast", Exit.USAGE, "--storage-class replaces a FILE"),
        ("run.yaml --depth 3", Exit.USAGE, "--depth is for --storage-class NAME; a FILE has its own workloads"),
        ("run.yaml --resume", Exit.USAGE, "--resume is for a run on this machine; add --directory DIR or --device"),
        ("run.yaml --directory . --yes", Exit.USAGE, "--yes is for a cluster; leave it out, or --directory and"),
        ("run.yaml --directory . -n x", Exit.USAGE, "--namespace is for a cluster"),
        ("--storage-class É", Exit.USAGE, "'É' cannot be the name of a StorageClass"),
        ("--storage-class fast --size 10Gx", Exit.USAGE, "'10Gx' is not a quantity; write a Kubernetes quantity"),
        ("--storage-class fast --block-size 100", Exit.ERROR, "spec.workloads[0].fio.blockSize[0]: "),
        ("--storage-class fast --runtime 9h", Exit.ERROR, "timeouts.totalSeconds"),
    ],
)
def test_options_that_do_not_fit_are_refused(kube: ConnectedKube, arguments: str, code: Exit, message: str) -> None:
    assert message in " ".join(invoke("run", *arguments.split(), code=code).split())
    assert kube.requests == []


def test_a_round_of_a_suite_that_exists_is_requested_and_followed(kube: ConnectedKube) -> None:
    options = ("run", f"bsuite/{NAMESPACE}/nightly", "--yes", "--timeout", "1s")
    assert f"there is no suite {NAMESPACE}/nightly; create it with" in invoke(*options, code=Exit.ERROR)
    kube.put(manifest("BenchmarkSuite", SUITE_SPEC, name="nightly", namespace=NAMESPACE))
    requests = set()
    for _ in range(2):
        output = invoke(*options, code=Exit.TIMEOUT)
        assert "to prefill" in output
        assert f"Round of suite {NAMESPACE}/nightly requested" in output
        (suite,) = kube.objects("BenchmarkSuite")
        requests.add(suite["metadata"]["annotations"][REQUEST_ROUND])
    assert len(requests) == 2, "each request is another one"


@pytest.mark.parametrize("option", ["--rm", "--dry-run", "--resume", "--directory=.", "--pattern=read"])
def test_options_of_new_runs_do_not_concern_a_suite_that_exists(kube: ConnectedKube, option: str) -> None:
    assert f"{option.partition('=')[0]} is for" in invoke("run", "bsuite/nightly", "--yes", option, code=Exit.USAGE)
    assert kube.requests == []
