"""The sources of `results`, `compare` and `report`."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli import main, source
from plimsoll.cli.source import load_results, results_of_run, runs_of
from plimsoll.conductor.sink import RESULTS_DIRECTORY, replace_file
from plimsoll.kube.port import ForbiddenError, Kind, UnknownKindError
from support.command_line import ConnectedKube
from support.fake_kube import FakeKube, failing
from support.results import result, trials_of

RESULTS = [result(trials_of([1000, 1001]), point=f"w-{number:03d}") for number in range(2)]


def stored(one: BenchmarkResult) -> dict[str, Any]:
    """Return a result as the API server stores it."""
    document: dict[str, Any] = one.model_dump(mode="json", exclude_none=True)
    labels = {"plimsoll.dev/run": one.spec.run}
    document["metadata"] |= {"labels": labels, "uid": "u", "managedFields": [{}], "ownerReferences": []}
    document["status"]["display"] = {"iops": "1k"}
    return document


def points(results: list[BenchmarkResult]) -> list[str]:
    return [one.spec.point for one in results]


@pytest.fixture
def kube(connected: ConnectedKube) -> ConnectedKube:
    """Return a cluster with the results of the run `default/baseline`."""
    for one in reversed(RESULTS):
        connected.put(stored(one))
    return connected


def refusal(named: str) -> str:
    with pytest.raises(click.ClickException) as caught:
        load_results(named)
    return caught.value.message


# Files


def test_directory_of_a_run(tmp_path: Path) -> None:
    for one in RESULTS:
        replace_file(tmp_path / RESULTS_DIRECTORY / f"{one.metadata.name}.json", one.model_dump_json(), sync=False)
    assert load_results(str(tmp_path)) == RESULTS


@pytest.mark.parametrize(
    "document",
    [
        [one.model_dump(mode="json") for one in RESULTS],
        {"kind": "List", "apiVersion": "v1", "items": [stored(one) for one in RESULTS], "metadata": {}},
    ],
    ids=["plimsoll", "kubectl"],
)
def test_file_with_all_results(tmp_path: Path, document: object) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(document))
    assert points(load_results(str(path))) == ["w-000", "w-001"]


def test_file_with_one_result(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(stored(RESULTS[0])))
    (found,) = load_results(str(path))
    assert found.spec == RESULTS[0].spec
    assert found.status.fingerprint == RESULTS[0].status.fingerprint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "kind: BenchmarkRun",
            "is not JSON (Expecting value: line 1 column 1 (char 0)); name a results directory, a run,",
        ),
        ("7", "items: must be a list of BenchmarkResult"),
        ('{"items": 7}', "items: must be a list of BenchmarkResult"),
        ("[7]", "[0]: 7 must be a mapping"),
        ('[{"kind": "BenchmarkResult"}]', "[0].metadata: is required"),
        ("[" * 100_000, "recursion"),
        ("\udcff", "can't decode byte"),
    ],
)
def test_invalid_result_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    message = refusal(str(path))
    assert message.startswith(f"the results in {path} cannot be read: ")
    assert words in message


def test_no_results_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("[]")
    assert refusal(str(path)) == f"{path} contains no results; create the file with `plimsoll results ... -o json`"
    assert "is it the results directory of a run that has recorded a trial?" in refusal(str(tmp_path))


def test_pipe_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, json.dumps(stored(RESULTS[0])).encode())
    os.close(writing)
    try:
        assert points(load_results(f"/dev/fd/{reading}")) == ["w-000"]
    finally:
        os.close(reading)


# Clusters


@pytest.mark.parametrize("named", ["default/baseline", "baseline"])
def test_run_in_a_cluster_has_the_contexts_namespace_by_default(kube: ConnectedKube, named: str) -> None:
    assert points(load_results(named)) == ["w-000", "w-001"]
    assert kube.requests == ["list BenchmarkResult default"]


@pytest.mark.parametrize("named", ["default/basline", "basline"])
def test_missing_run_is_refused_with_similar_names(kube: ConnectedKube, named: str) -> None:
    for name in ("baseline", "other"):
        kube.put(run_document(name))
    assert refusal(named) == (
        f"there is no file or directory {named}. Looking for a run of that name: "
        "there is no run basline in namespace default of context here; did you mean baseline?"
    )


def test_without_a_similar_name_all_are_listed(kube: ConnectedKube) -> None:
    for number in range(12):
        kube.put(run_document(f"x{number:02d}"))
    assert refusal("quite-other").endswith("; there are " + ", ".join(f"x{n:02d}" for n in range(10)) + " and 2 more")


@pytest.mark.usefixtures("kube")
def test_empty_namespace_is_reported() -> None:
    message = "no run baseline in namespace elsewhere of context here; -n chooses another namespace"
    assert refusal("elsewhere/baseline").endswith(message)


def test_without_the_right_to_list_runs_no_names_are_suggested(kube: ConnectedKube) -> None:
    kube.put(run_document("baseline"))
    kube.interfere = forbidding("BenchmarkRun")
    assert refusal("default/basline").endswith("of context here; -n chooses another namespace")


def test_run_without_results_has_its_own_error(kube: ConnectedKube) -> None:
    kube.put(run_document("new"))
    assert refusal("new") == "run default/new has no results yet; `plimsoll watch default/new` shows its progress"


def run_document(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": metadata, "spec": {}}


def forbidding(kind: str) -> Callable[[str], None]:
    def interfere(asked: str) -> None:
        if f" {kind} " in f"{asked} ":
            raise ForbiddenError(asked, "no")

    return interfere


@pytest.mark.parametrize("named", ["a/b/c", "A/b", "./a/b", "-a/b", "no.json", ""])
def test_invalid_source_is_refused(kube: ConnectedKube, named: str) -> None:
    assert refusal(named) == (
        f"there is no file or directory {named!r}, and it is not the name of a run (NAME, NAMESPACE/NAME) or a suite "
        "(bsuite/NAME)"
    )
    assert kube.requests == []


def test_without_a_cluster_both_readings_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    message = refusal("demo")
    assert message.startswith("there is no file or directory demo. Looking for a run of that name: ")
    assert message.endswith("does not exist; set KUBECONFIG, or give --kubeconfig FILE")


def test_what_is_here_comes_before_what_is_in_a_cluster(
    kube: ConnectedKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "baseline").write_text(json.dumps(stored(RESULTS[1])))
    assert points(load_results("default/baseline")) == ["w-001"]


def results_by(*arguments: str, program: str, code: int = 0) -> str:
    """Return the output of `results` for a program name."""
    found = CliRunner().invoke(main, ["results", *arguments, "-o", "csv"], prog_name=program)
    assert found.exit_code == code, found.output
    return found.output


@pytest.mark.parametrize(
    ("program", "arguments", "read"),
    [
        ("plimsoll", ["baseline"], "file"),
        ("plimsoll", ["-n", "default", "baseline"], "run"),
        ("plimsoll", ["--context", "here", "baseline"], "run"),
        ("plimsoll", ["default/baseline"], "file"),
        ("kubectl plimsoll", ["baseline"], "run"),
        ("kubectl plimsoll", ["./baseline"], "file"),
        ("kubectl plimsoll", ["default/baseline"], "file"),
    ],
)
def test_what_a_name_is(
    kube: ConnectedKube,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    arguments: list[str],
    read: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "baseline", tmp_path / "default" / "baseline"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(stored(RESULTS[1])))
    lines = results_by(*arguments, program=program).splitlines()
    assert (len(lines), len(kube.requests)) == {"run": (3, 1), "file": (2, 0)}[read]


def test_path_with_the_name_of_a_missing_run_is_mentioned(
    kube: ConnectedKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "before").mkdir()
    said = results_by("before", program="kubectl plimsoll", code=1)
    assert said.startswith("Error: write ./before for the local path. there is no run before in namespace")


def test_namespace_of_the_option_is_taken(kube: ConnectedKube) -> None:
    assert "no run baseline in namespace other" in results_by("-n", "other", "baseline", program="plimsoll", code=1)
    assert len(results_by("-n", "other", "default/baseline", program="plimsoll").splitlines()) == 3


def test_what_the_api_server_says_is_passed_on(kube: ConnectedKube) -> None:
    kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=1)
    said, remedy = refusal("default/baseline").splitlines()
    assert said == "list BenchmarkResult default: no"
    assert "RoleBinding to the ClusterRole plimsoll-view" in remedy


def test_cluster_without_plimsoll_is_refused(kube: ConnectedKube) -> None:
    kube.kinds = {kind: traits for kind, traits in kube.kinds.items() if kind.kind != "BenchmarkResult"}
    said, remedy = refusal("default/baseline").splitlines()
    assert "does not serve this kind" in said
    assert remedy.startswith("is Plimsoll installed in context here?")


async def test_object_that_cannot_be_read_is_named(kube: ConnectedKube) -> None:
    kube.put(stored(RESULTS[0]) | {"spec": {}})
    with pytest.raises(ValueError, match=r"baseline-w-000.spec.run: is required"):
        await results_of_run(kube, "default", "baseline")


async def test_kind_must_be_known() -> None:
    kube = FakeKube()
    kube.kinds = {}
    with pytest.raises(UnknownKindError):
        await results_of_run(kube, "default", "baseline")


def test_runs_are_distinguished() -> None:
    assert runs_of([*RESULTS, result([], run="other")]) == ["uid of baseline", "uid of other"]


# Suites


@pytest.mark.parametrize(
    ("named", "kind", "namespace"),
    [
        ("bsuite/weekly", source.SUITE, "default"),
        ("bsuite/bench/weekly", source.SUITE, "bench"),
        ("brun/weekly", source.RUN, "default"),
        ("brun/bsuite/weekly", source.RUN, "bsuite"),
        ("bench/weekly", source.RUN, "bench"),
    ],
)
@pytest.mark.usefixtures("connected")
def test_a_prefix_names_the_kind(named: str, kind: Kind, namespace: str) -> None:
    place = source.find(named)
    assert isinstance(place, source.InCluster)
    assert (place.kind, place.namespace, place.name) == (kind, namespace, "weekly")
    again = source.find(place.source)
    assert isinstance(again, source.InCluster)
    assert (again.kind, str(again)) == (kind, str(place))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["results", "bsuite/weekly", "bench/nightly"], "bsuite/weekly is a suite, and others are runs"),
        (["results", "bsuite/weekly", "--point", "w-000"], "--point is for runs"),
        (["results", "bsuite/weekly", "-o", "csv"], "-o csv is for runs"),
        (["results", "bench/nightly", "--accept", "1"], "--accept is for rounds of a suite"),
        (["results", "bsuite/weekly", "--accept", "1"], "annotate the suite with plimsoll.dev/accept-round"),
        (["report", "bench/nightly", "--accept", "1"], "--accept is for rounds of a suite"),
        (
            ["compare", "bsuite/weekly", "bench/nightly"],
            "name one of its runs: `kubectl get brun --namespace default -l plimsoll.dev/suite=weekly` lists them",
        ),
        (["watch", "bench/nightly", "--round", "now"], "--round is for suites; write bsuite/bench/nightly"),
        (["watch", "bsuite/bench/weekly", "--round", ""], "--round is empty, and an empty annotation requests nothing"),
    ],
)
@pytest.mark.usefixtures("connected")
def test_what_does_not_fit_the_kind_is_refused(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, message in done.output) == (1 if "name one" in message else 2, True), done.output
