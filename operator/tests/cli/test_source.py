"""Where `results`, `compare`, `noise` and `percentile` read from."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click
import pytest

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli import source
from plimsoll.cli.source import load_results, results_of_run, runs_of
from plimsoll.conductor.sink import RESULTS_DIRECTORY, replace_file
from plimsoll.kube.errors import ForbiddenError, UnknownKindError
from support.fake_kube import FakeKube, failing
from support.repeated import result, trials_of

RESULTS = [result(trials_of([1000, 1001]), point=f"w-{number:03d}") for number in range(2)]


def stored(one: BenchmarkResult) -> dict[str, Any]:
    """Return a result as an API server gives it."""
    document: dict[str, Any] = one.model_dump(mode="json", exclude_none=True)
    labels = {"plimsoll.dev/run": one.spec.run}
    document["metadata"] |= {"labels": labels, "uid": "u", "managedFields": [{}], "ownerReferences": []}
    document["status"]["display"] = {"iops": "1k"}
    return document


def points(results: list[BenchmarkResult]) -> list[str]:
    return [one.spec.point for one in results]


class ConnectedKube(FakeKube):
    """A cluster with the results of the run `default/baseline`, as a connection."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


@pytest.fixture
def kube(monkeypatch: pytest.MonkeyPatch) -> ConnectedKube:
    kube = ConnectedKube()
    for one in reversed(RESULTS):
        kube.put(stored(one))
    monkeypatch.setattr("plimsoll.kube.client.AioKube", lambda: kube)
    return kube


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
        ("", "Expecting value"),
        ("7", "items: must be a list of BenchmarkResult"),
        ('{"items": 7}', "items: must be a list of BenchmarkResult"),
        ("[7]", "[0]: 7 must be a mapping"),
        ('[{"kind": "BenchmarkResult"}]', "[0].metadata: is required"),
        ("[" * 100_000, "recursion"),
        ("\udcff", "can't decode byte"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    message = refusal(str(path))
    assert message.startswith(f"the results in {path} cannot be read: ")
    assert words in message


def test_no_results_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("[]")
    assert refusal(str(path)) == f"{path} holds no results; write them with `plimsoll results ... -o json`"
    assert "is it the --output of a run that has recorded a trial?" in refusal(str(tmp_path))


def test_endless_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_FILE_BYTES", 2**20)
    assert "larger than 1 MiB" in refusal("/dev/zero")


def test_pipe_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, json.dumps(stored(RESULTS[0])).encode())
    os.close(writing)
    try:
        assert points(load_results(f"/dev/fd/{reading}")) == ["w-000"]
    finally:
        os.close(reading)


# Clusters


def test_run_in_a_cluster(kube: ConnectedKube) -> None:
    assert points(load_results("default/baseline")) == ["w-000", "w-001"]
    assert kube.requests == ["list BenchmarkResult default"]


@pytest.mark.parametrize("named", ["default/other", "elsewhere/baseline"])
def test_run_that_is_not_there_is_refused(kube: ConnectedKube, named: str) -> None:
    assert refusal(named) == f"{named} holds no results; look for it with `kubectl get brun,bres`"


@pytest.mark.parametrize("named", ["nothing", "a/b/c", "A/b", "./a/b", "-a/b", ""])
def test_what_can_be_nothing_is_refused(kube: ConnectedKube, named: str) -> None:
    assert "is neither a directory nor a file here, nor NAMESPACE/RUN" in refusal(named)
    assert kube.requests == []


def test_what_is_here_comes_before_what_is_in_a_cluster(
    kube: ConnectedKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "baseline").write_text(json.dumps(stored(RESULTS[1])))
    assert points(load_results("default/baseline")) == ["w-001"]


def test_what_the_api_server_says_is_passed_on(kube: ConnectedKube) -> None:
    kube.interfere = failing(lambda asked: ForbiddenError(asked, "no"), times=1)
    assert refusal("default/baseline").endswith("cannot be read: list BenchmarkResult default: no")


def test_cluster_without_plimsoll_is_refused(kube: ConnectedKube) -> None:
    kube.kinds = {kind: traits for kind, traits in kube.kinds.items() if kind.kind != "BenchmarkResult"}
    assert "does not serve this kind" in refusal("default/baseline")


async def test_object_that_cannot_be_read_is_named(kube: ConnectedKube) -> None:
    kube.put(stored(RESULTS[0]) | {"spec": {}})
    with pytest.raises(ValueError, match=r"baseline-w-000.spec.run: is required"):
        await results_of_run(kube, "default", "baseline")


async def test_kind_must_be_known() -> None:
    kube = FakeKube()
    kube.kinds = {}
    with pytest.raises(UnknownKindError):
        await results_of_run(kube, "default", "baseline")


def test_runs_are_told_apart() -> None:
    assert runs_of([*RESULTS, result([], run="other")]) == ["uid of baseline", "uid of other"]
