"""`plimsoll plan`: the plan of a run, or its errors."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from plimsoll.api.manifest import MAX_TEXT_BYTES
from plimsoll.cli import Exit, main
from plimsoll.kube.port import ForbiddenError
from plimsoll.plan.document import load_plan
from support.command_line import ConnectedKube, invoke

QUICKSTART = Path(__file__).parents[1] / "golden" / "plan-v1-quickstart.yaml"
MANIFESTS = Path(__file__).parents[3] / "manifests"
SAMPLES = sorted(path for name in ("samples", "demos", "local") for path in (MANIFESTS / name).glob("*.yaml"))


run = partial(invoke, "plan")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_has_a_plan(path: Path) -> None:
    assert "Total " in run(str(path))


def test_table_shows_points_and_costs() -> None:
    lines = [line.rstrip() for line in run(str(QUICKSTART), "--seed", "1").splitlines()]
    assert lines[:2] == ["quickstart", "Point                 Tool  Parameters            Clients  Ramp + run"]
    assert lines[2] == "random-read-000       fio   randread 4Ki qd1          2/2     1 + 3 s"
    assert lines[7:15] == [
        "Points     4 in 3 passes, each in its own shuffled order (seed 1)",
        "Trials     12, plus repeated attempts",
        "Measuring  0:01:24 without repeated attempts",
        "Prefill    0:00:03 if every client writes 100 MiB/s",
        "Settling   2 s",
        "Total      0:01:29 of at most 4:00:00 (timeouts.totalSeconds)",
        "Writing    410 MiB to prefill and about 4.69 GiB in trials, at 100 MiB/s of each client without a rate limit",
        "Capacity   410 MiB of data, without the copies that the storage keeps",
    ]


SEARCHES = Path(__file__).parents[3] / "manifests" / "local" / "line.yaml"


def test_a_search_is_shown_with_its_bounds_and_without_the_power_of_repetitions() -> None:
    text = run(str(SEARCHES), "--seed", "1", columns="200")
    lines = [line.rstrip() for line in text.splitlines()]
    assert "randread 4Ki up to qd64" in lines[2]
    assert lines[4:8] == [
        "Points     1, each a search for the line",
        "Trials     at most 40, plus repeated attempts",
        "Searches   random-read-000: 250 to 4,000 IOPS in steps of 1, at most 40 probes in 0:11:20",
        "Measuring  at most 0:11:20 without repeated attempts",
    ]
    assert "Total      at most 0:11:25 of at most 4:00:00 (timeouts.totalSeconds)" in lines


def test_other_workloads_beside_a_search_are_repeated(tmp_path: Path) -> None:
    document = yaml.safe_load(SEARCHES.read_text())
    document["spec"]["workloads"].append({"name": "writes", "fio": {"pattern": "randwrite"}})
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(document))
    text = run(str(file), "--seed", "1", columns="200")
    assert "1 in 5 passes, each in its own shuffled order (seed 1), and 1 more that is a search for the line" in text


def costs(tmp_path: Path, **spec: Any) -> dict[str, str]:
    """Return the costs of a run with these parts of a specification, name -> text."""
    file = tmp_path / "run.yaml"
    document = yaml.safe_load(QUICKSTART.read_text())
    file.write_text(yaml.safe_dump(document | {"spec": document["spec"] | spec}))
    _, _, text = run(str(file), columns="160").partition("\n\n")
    return {name: words.strip() for name, _, words in (line.partition("  ") for line in text.splitlines())}


CLUSTER = {"namespace": "rook-ceph", "name": "rook-ceph"}
CODED = {"dataChunks": 4, "codingChunks": 2}
IMAGE = {"size": "1Gi", "access": "LibRBD"}


@pytest.mark.parametrize(
    ("pool", "layout", "capacity"),
    [
        ({"replicated": {"size": 3}}, "replicated: {size: 3}, failureDomain: host", "2 GiB of data, 6 GiB with"),
        (
            {"erasureCoded": CODED, "failureDomain": "osd", "deviceClass": "ssd", "placementGroups": 64},
            "failureDomain: osd, deviceClass: ssd, placementGroups: 64",
            "2 GiB of data, 3 GiB with",
        ),
    ],
)
def test_created_pool_is_shown(tmp_path: Path, pool: dict[str, Any], layout: str, capacity: str) -> None:
    said = costs(tmp_path, storage={"rook": {"cluster": CLUSTER, "pool": pool}, "volume": IMAGE})
    assert said["Pool"].startswith("pool created for the run: {")
    assert layout in said["Pool"]
    assert said["Capacity"] == f"{capacity} replicas or coding chunks"


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        ({"name": "rbd"}, "rbd, which exists already and is not removed"),
        (
            {"name": "meta", "dataPool": "coded"},
            "meta, with the images' data in coded, which exists already and is not removed",
        ),
    ],
)
def test_existing_pool_is_shown(tmp_path: Path, pool: dict[str, str], words: str) -> None:
    said = costs(tmp_path, storage={"rook": {"cluster": CLUSTER, "existingPool": pool}, "volume": IMAGE})
    assert said["Pool"] == words
    assert said["Capacity"] == "2 GiB of data, without the copies that the storage keeps"


def test_standard_input_is_read() -> None:
    text = QUICKSTART.read_text()
    read = CliRunner().invoke(main, ["plan", "-", "--seed", "1"], input=text)
    assert read.output == run(QUICKSTART, "--seed", "1")
    wrong = CliRunner().invoke(main, ["plan", "-"], input="kind: Pod")
    assert wrong.output.startswith("Error: standard input is invalid:\n  kind: ")
    assert wrong.exit_code == Exit.ERROR


def test_pool_is_not_known_of_a_storage_class(tmp_path: Path) -> None:
    assert not {"Pool", "Ceph"} & costs(tmp_path).keys()


CEPH = {"user": "u", "keyringSecret": {"name": "k"}, "pool": {"name": "p"}}


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        ({"rook": {"cluster": CLUSTER, "existingPool": {"name": "rbd"}}}, "CephCluster rook-ceph/rook-ceph"),
        ({"rook": {"existingPool": {"name": "rbd"}}}, "the only Rook cluster that its namespace may use"),
        ({"ceph": {**CEPH, "monitors": ["192.0.2.2", "192.0.2.1"]}}, "monitors 192.0.2.1, 192.0.2.2"),
    ],
)
def test_cluster_is_shown(tmp_path: Path, storage: dict[str, Any], words: str) -> None:
    assert costs(tmp_path, storage={**storage, "volume": IMAGE})["Ceph"] == words


def test_overwriting_is_shown_if_there_is_any(tmp_path: Path) -> None:
    assert "Overwriting" not in costs(tmp_path)
    assert costs(tmp_path, prepare={"precondition": {"seconds": 600}})["Overwriting"] == "0:10:00"


def test_preparation_before_each_trial_is_shown_with_its_sum(tmp_path: Path) -> None:
    assert "Preparing" not in costs(tmp_path)
    found = costs(tmp_path, prepare={"precondition": {"seconds": 600}, "perTrial": "NewDataSet", "settleSeconds": 0})
    words, altogether = found["Preparing"].rsplit(", ", 1)
    times = int(words.split(", ")[1].removesuffix(" times"))
    assert words == f"a new data set before each trial, {times} times"
    assert altogether.endswith(" altogether")
    assert found["Trials"] == f"{times}, plus repeated attempts"


def test_objects_need_no_prefill(tmp_path: Path) -> None:
    storage = {"rook": {"cluster": CLUSTER, "existingPool": {"name": "rbd"}}}
    said = costs(tmp_path, storage=storage, workloads=[{"name": "objects", "radosBench": {}}])
    assert said["Prefill"] == "none"
    assert "Capacity" not in said


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
def test_table_keeps_every_column(columns: int) -> None:
    text = run(str(QUICKSTART), columns=str(columns))
    assert all(len(line) <= columns for line in text.splitlines())
    assert "Ramp + run" in text
    assert text.count("1 + 3 s") == 4
    assert text.count("randread") == 2


def test_json_is_the_frozen_plan() -> None:
    text = run(str(QUICKSTART), "-o", "json", "--seed", "7")
    plan = load_plan(text)
    assert (plan.seed, len(plan.points)) == (7, 4)
    assert text == run(str(QUICKSTART), "-o", "json", "--seed", "7")


def test_without_a_seed_a_new_one_is_taken() -> None:
    seeds = {load_plan(run(str(QUICKSTART), "-o", "json")).seed for _ in range(2)}
    assert len(seeds) == 2
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_run_without_prefill_says_so(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    text = QUICKSTART.read_text().replace("randread", "write").replace("settleSeconds: 2", "prefill: false")
    file.write_text(text)
    assert "Prefill    none" in run(str(file))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("repetitions: 3", "repetition: 3", "spec.repetition: is not a known field; did you mean repetitions?"),
        (
            "pattern: randread",
            "pattern: rread",
            'spec.workloads[0].fio.pattern: "rread" must be read, write, randread,',
        ),
        ("settleSeconds: 2", "prefill: false", "spec.prepare.prefill: false must be true, because random-read would"),
        ("settleSeconds: 2", "settleSeconds: 20000", "spec.timeouts.totalSeconds: 14400 is less than the 20084 s"),
        ("kind: ", "kind: a: ", "document: line 3, column 8: is not YAML: mapping values are"),
        ("kind: BenchmarkRun", "kind: Run", 'kind: "Run" must be BenchmarkRun or BenchmarkSuite'),
    ],
)
def test_bad_run_is_refused_with_the_field_and_the_remedy(tmp_path: Path, old: str, new: str, expected: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(QUICKSTART.read_text().replace(old, new))
    error, *problems = run(str(file), code=1).splitlines()
    assert error == f"Error: {file} is invalid:"
    assert len(problems) == 1
    assert problems[0].startswith(f"  {expected}")


def test_all_problems_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(QUICKSTART.read_text().replace("[1, 16]", "[0, x]"))
    assert run(str(file), code=1).count("\n  spec.workloads[") == 4


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "  document: is empty; write one BenchmarkRun of plimsoll.dev/v1alpha1"),
        (b"a: \xff", "  document: is not UTF-8 text (byte 3)"),
        (b"a: " + b"x" * MAX_TEXT_BYTES, "  document: is larger than 256 KiB; is it the right file?"),
        ("é".encode() * MAX_TEXT_BYTES, "  document: is larger than 256 KiB; is it the right file?"),
        (b"x" + "é".encode() * MAX_TEXT_BYTES, "  document: is larger than 256 KiB; is it the right file?"),
    ],
    ids=["empty", "not text", "large", "large text", "large text cut within a character"],
)
def test_file_that_is_no_run_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_bytes(content)
    assert run(str(file), code=1).splitlines()[1:] == [expected]


def test_endless_file_is_refused() -> None:
    assert "larger than 256 KiB" in run("/dev/zero", code=1)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert "there is no file or directory" in run(str(tmp_path / "run.yaml"), code=1)
    assert "Is a directory" in run(str(tmp_path), code=1)


@pytest.mark.parametrize("seed", ["-1", "x"])
def test_seed_is_a_natural_number(seed: str) -> None:
    assert "Invalid value for '--seed'" in run(str(QUICKSTART), "--seed", seed, code=2)


# Of a run in a cluster


def stored_run() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(QUICKSTART.read_text())
    document["metadata"] |= {"namespace": "default", "managedFields": [{}], "generation": 1}
    return document | {"status": {"observedGeneration": 1}}


def with_plan(kube: ConnectedKube, text: str) -> None:
    metadata = {"name": "quickstart-plan", "namespace": "default"}
    kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"plan.json": text}})


def test_frozen_plan_of_a_run_is_shown(connected: ConnectedKube) -> None:
    text = run(str(QUICKSTART), "--seed", "1", "-o", "json")
    connected.put(stored_run())
    with_plan(connected, text)
    assert json.loads(run("default/quickstart", "-o", "json")) == json.loads(text)
    assert "shuffled order (seed 1)" in run("quickstart")


def test_run_without_a_plan_is_expanded_with_a_note(connected: ConnectedKube) -> None:
    connected.put(stored_run())
    said = run("quickstart")
    assert said.startswith("Run default/quickstart: it has no plan yet. This is a plan of its specification")
    assert "Trials     12, plus repeated attempts" in said


def test_run_whose_plan_may_not_be_read_is_expanded(connected: ConnectedKube) -> None:
    def interfere(asked: str) -> None:
        if "ConfigMap" in asked:
            raise ForbiddenError(asked, "may not")

    connected.put(stored_run())
    connected.interfere = interfere
    assert "no right to read its plan (may not)" in run("quickstart")


def test_plan_of_another_version_is_refused(connected: ConnectedKube) -> None:
    connected.put(stored_run())
    with_plan(connected, '{"schemaVersion": 99}')
    assert "run default/quickstart cannot be read: schemaVersion: 99 is not supported" in run("quickstart", code=1)


def test_run_has_a_seed_of_its_own(connected: ConnectedKube) -> None:
    assert "--seed applies to a FILE or a suite" in run("quickstart", "--seed", "1", code=2)
    assert connected.requests == []


def test_missing_run_is_refused(connected: ConnectedKube) -> None:
    connected.put(stored_run())
    assert "did you mean quickstart?" in run("quickstar", code=1)


def test_yaml_is_what_json_is() -> None:
    arguments = (str(QUICKSTART), "--seed", "1", "-o")
    assert yaml.safe_load(run(*arguments, "yaml")) == json.loads(run(*arguments, "json"))


def test_command_line_names_its_commands() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name in ("plan", "run", "watch", "results", "report", "compare"):
        assert f"\n  {name} " in result.output
    assert CliRunner().invoke(main, ["bogus"]).exit_code == 2


def test_dropping_caches_is_shown_if_the_run_does(tmp_path: Path) -> None:
    assert costs(tmp_path, prepare={"dropCaches": True})["Caches"] == "dropped on the clients' nodes before every trial"
    assert "Caches" not in costs(tmp_path)
