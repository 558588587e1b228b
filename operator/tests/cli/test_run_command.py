"""`plimsoll run`: local storage, and what it cannot replace."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import ClickException
from click.testing import CliRunner

from plimsoll.api.run import BenchmarkRun, decode_run, load_run
from plimsoll.cli.local_storage import Target, _on_this_machine, client_volume, fit_to_machine
from plimsoll.cli.run import command as run_command
from plimsoll.plan.expand import make_plan
from plimsoll.protocol.assignment import SharedDirectory

FILE = Path("run.yaml")
MANIFESTS = Path(__file__).parents[3] / "manifests"
CLUSTER = {"namespace": "rook-ceph", "name": "rook-ceph"}
CEPH = {"monitors": ["192.0.2.1"], "user": "u", "keyringSecret": {"name": "k"}, "pool": {"name": "p"}}
SOURCES = {
    "rook": {"rook": {"cluster": CLUSTER, "pool": {"replicated": {"size": 3}}}},
    "existing": {"rook": {"cluster": CLUSTER, "existingPool": {"name": "p"}}},
    "ceph": {"ceph": CEPH},
}
IMAGE = {"size": "64Mi", "access": "LibRBD", "rbdCache": True}
OSD_BENCH = {"keyringSecret": {"name": "admin"}}


def document(storage: dict[str, Any], **workload: Any) -> dict[str, Any]:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "local"},
        "spec": {"storage": storage, "workloads": [{"name": "w", **(workload or {"fio": {}})}]},
    }


def run_of(storage: dict[str, Any], **workload: Any) -> BenchmarkRun:
    return decode_run(document(storage, **workload))


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
@pytest.mark.parametrize("mode", ["Block", "Filesystem"])
def test_machine_takes_the_place_of_any_storage(source: dict[str, Any], mode: Any) -> None:
    plan = make_plan(_on_this_machine(FILE, run_of({**source, "volume": IMAGE}), mode), seed=1)
    assert plan.ceph is None
    assert plan.volume is not None
    assert (plan.volume.size, plan.volume.mode) == (64 * 2**20, mode)
    assert (plan.volume.access, plan.volume.rbd_cache) == ("PVC", False)


SHARED = {"storageClass": {"name": "nfs"}, "volume": {"size": "64Mi", "sharing": "Shared"}}


def test_a_shared_volume_is_one_directory_for_all_clients(tmp_path: Path) -> None:
    run = _on_this_machine(FILE, run_of(SHARED, fio={"files": "SharedFile"}), "Filesystem")
    volume = client_volume(make_plan(run, seed=1), 0, data=tmp_path, devices=())
    assert volume == SharedDirectory(path=str(tmp_path), part=64 * 2**20, clients=1, one_file=True)


def test_clients_cannot_share_devices() -> None:
    with pytest.raises(ClickException, match=r"volume\.sharing Shared, which clients need a directory for; use --dir"):
        _on_this_machine(FILE, run_of(SHARED), "Block")


def test_plan_is_the_same_whatever_the_storage_is_called() -> None:
    ceph = _on_this_machine(FILE, run_of({"ceph": CEPH, "volume": IMAGE}), "Block")
    other = run_of({"storageClass": {"name": "fast"}, "volume": {"size": "64Mi"}})
    assert make_plan(ceph, seed=1) == make_plan(_on_this_machine(FILE, other, "Block"), seed=1)


ON_CEPH = {"ceph": CEPH, "volume": IMAGE}
ON_A_CLASS = {"storageClass": {"name": "fast"}, "volume": {"size": "64Mi"}}


@pytest.mark.parametrize(
    ("tool", "parameters", "storage", "needs"),
    [
        ("radosBench", {}, ON_CEPH, "a Ceph cluster"),
        ("rbdBench", {}, ON_CEPH, "a Ceph cluster"),
        ("osdBench", OSD_BENCH, ON_CEPH, "a Ceph cluster"),
        *((tool, {}, ON_A_CLASS, "a network between nodes") for tool in ("iperf3", "netcat", "ping")),
    ],
)
def test_tools_of_ceph_and_between_clients_are_refused(
    tmp_path: Path, tool: str, parameters: dict[str, Any], storage: dict[str, Any], needs: str
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(document(storage, **{tool: parameters})))
    assert refusal(file, tmp_path) == (
        f"Error: {file} cannot be run on this machine: workload w runs {tool}, which requires {needs}; "
        "remove the workload, or apply the run to a cluster\n"
    )


def test_a_disturbance_is_refused_before_anything_is_prepared(tmp_path: Path) -> None:
    file, osds = tmp_path / "run.yaml", {"action": "Down"}
    disturbed = document(ON_CEPH, fio={})
    disturbed["spec"]["workloads"][0] |= {"runtimeSeconds": 300, "disturb": {"osds": osds}}
    file.write_text(yaml.safe_dump(disturbed))
    assert refusal(file, tmp_path) == (
        f"Error: {file} cannot be run on this machine: spec.workloads[0].disturb takes OSDs of a Ceph cluster away; "
        "remove it, or apply the run to a cluster\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]


def test_a_tool_that_is_not_installed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(document({"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}}, ioping={})))
    assert refusal(file, tmp_path) == (
        f"Error: {file} cannot be run on this machine: ioping of workload w cannot be run; install ioping, or remove "
        "the workload\n"
    )


@pytest.mark.parametrize(("tool", "user"), [("fio", "workload w"), ("dd", "spec.prepare.prefill")])
def test_missing_fio_is_noticed_before_anything_is_prepared(tmp_path: Path, tool: str, user: str) -> None:
    file, storage = tmp_path / "run.yaml", {"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}}
    file.write_text(yaml.safe_dump(document(storage, **{tool: {}})))
    assert refusal(file, tmp_path, "--fio", "/none/fio") == (
        f"Error: {file} cannot be run on this machine: /none/fio of {user} cannot be run; install fio, or name it with "
        "--fio\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]


def test_the_option_is_named_that_gives_workloads_the_volume_they_need(tmp_path: Path) -> None:
    file, storage = tmp_path / "run.yaml", {"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}}
    file.write_text(yaml.safe_dump(document(storage, fio={"pattern": "randtrim"})))
    assert refusal(file, tmp_path) == (
        f"Error: {file} cannot be run with --directory: spec.storage.volume.mode: Filesystem must be Block, because a "
        "workload trims; use a volume of mode Block, which file systems do not have, or leave out the workloads that "
        "trim\n"
    )
    fit_to_machine(file, load_run(file.read_text()), Target(devices=(Path("/dev/none"),)), "sh")


def test_a_tool_that_needs_files_is_refused_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: f"/usr/bin/{program}")
    run = run_of({"storageClass": {"name": "any"}, "volume": {"size": "1Gi", "mode": "Filesystem"}}, bonnie={})
    message = "with --device: spec.storage.volume.mode: Block must be Filesystem, because bonnie works on files"
    with pytest.raises(ClickException, match=message):
        fit_to_machine(FILE, run, Target(devices=(Path("/dev/none"),)), "sh")
    fit_to_machine(FILE, run, Target(directory=Path("/none")), "sh")


def test_engine_of_librbd_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(json.dumps(document({"ceph": CEPH, "volume": IMAGE}, fio={"engine": "rbd"})))
    assert "spec.workloads[0]: must have engine rbd with access LibRBD" in refusal(file, tmp_path)


@pytest.mark.parametrize("storage", [{"ceph": CEPH}, None], ids=["no volume", "no storage"])
def test_machine_has_no_volume_that_the_run_does_not_name(tmp_path: Path, storage: dict[str, Any] | None) -> None:
    file = tmp_path / "run.yaml"
    given = document(storage or {}, fio={})
    if storage is None:
        del given["spec"]["storage"]
    file.write_text(json.dumps(given))
    words = "spec.storage: must be set with" if storage is None else "spec.storage.volume: must be set, because fio"
    assert words in refusal(file, tmp_path)


def refusal(file: Path, directory: Path, *options: str) -> str:
    arguments = [str(file), "--directory", str(directory), "--results", str(directory / "results"), *options]
    result = CliRunner().invoke(run_command, arguments)
    assert result.exit_code == 1, result.output
    assert not (directory / "results").exists()
    return result.output


def test_raw_output_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    file, data, raw, results = (tmp_path / name for name in ("run.yaml", "data", "raw", "results"))
    storage = {"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}}
    file.write_text(yaml.safe_dump(document(storage)))
    data.mkdir()
    raw.mkdir()
    (raw / "of-another-run").write_text("")
    options = [str(file), "--directory", str(data), "--results", str(results), "--raw-output", str(raw)]
    refused = CliRunner().invoke(run_command, options)
    assert refused.exit_code == 1
    assert "is not empty" in refused.output
    assert not results.exists()


@pytest.mark.parametrize("sample", ["demos/quickstart.yaml", "local/suite.yaml"])
def test_devices_require_confirmation_before_anything_is_written(tmp_path: Path, sample: str) -> None:
    results = tmp_path / "results"
    options = [str(MANIFESTS / sample), "--device", str(tmp_path / "nothing"), "--results", str(results)]
    refused = CliRunner().invoke(run_command, options)
    assert (refused.exit_code, results.exists()) == (2, False)
    assert refused.output.endswith("--device destroys all data on the device; add --destroy-data to confirm\n")


@pytest.mark.parametrize("sample", ["demos/quickstart.yaml", "local/suite.yaml"])
def test_results_that_cannot_be_written_are_refused(tmp_path: Path, sample: str) -> None:
    (tmp_path / "file").touch()
    output = tmp_path / "file" / "results"
    options = [str(MANIFESTS / sample), "--directory", str(tmp_path), "--results", str(output)]
    refused = CliRunner().invoke(run_command, options)
    assert (refused.exit_code, refused.output) == (
        1,
        f"Error: --results {output}: Not a directory; choose a writable directory\n",
    )


def test_cold_caches_are_refused_to_a_user_who_may_not_drop_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run would measure warm caches."""
    monkeypatch.setattr("plimsoll.cli.local_storage.may_drop_caches", lambda: False)
    file = tmp_path / "run.yaml"
    given = document({"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}}, fio={})
    given["spec"]["prepare"] = {"dropCaches": True}
    file.write_text(json.dumps(given))
    words = refusal(file, tmp_path)
    assert "spec.prepare.dropCaches is true" in words
    assert "run as root, or set it to false" in words
