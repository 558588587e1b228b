"""`plimsoll layers`: the bottom-up table of a Ceph cluster."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.environment import Environment
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.layers import layers_of, write_amplification
from plimsoll.report.figure import runs_of
from plimsoll.report.layers_links import layers_section
from plimsoll.report.view import layer_sentences
from support.command_line import invoke
from support.goldens import CEPH, golden, tables_of, texts
from support.results import ALL_LAYERS, READ, WRITE, layer_result, searched

REPLICATED = {"type": "replicated", "size": 3, "pgNum": 64}


def placed(results: Sequence[BenchmarkResult], pool: dict[str, Any] | None) -> list[BenchmarkResult]:
    """Return the results as measured on a Ceph pool with this layout."""
    environment = Environment.model_validate({"ceph": {"fsid": "x"}} | ({"pool": pool} if pool else {}))
    return [
        one.model_copy(update={"status": one.status.model_copy(update={"environment": environment})}) for one in results
    ]


def show(results: Sequence[BenchmarkResult], path: Path, *arguments: str, code: int = 0) -> str:
    file = path / "results.json"
    file.write_text(json.dumps([one.model_dump(mode="json") for one in results]))
    return invoke("layers", file, *arguments, code=code)


def test_table_reads_every_layer_against_the_one_below(tmp_path: Path) -> None:
    lines = show(placed(ALL_LAYERS, REPLICATED), tmp_path).splitlines()
    cells = [line.split() for line in lines]
    assert cells[0] == ["Layer", "Op", "MiB/s", "Limit", "Of", "limit", "IOPS", "Limit", "Of", "limit"]
    assert [line[:2] for line in cells[1:6]] == [
        ["OSD", "write"],
        ["RADOS", "read"],
        ["RADOS", "write"],
        ["RBD", "read"],
        ["RBD", "write"],
    ]
    assert "RADOS writes reach 80 % of the limit set by the OSDs." in lines
    assert "The pool writes 3 bytes per byte of a client." in lines
    assert "80 %" in lines[3]


def test_points_that_memory_may_have_answered_are_named_and_left_out(tmp_path: Path) -> None:
    cached = layer_result("dd-000", "dd", {READ: (10**12, 10**9)}, verdict=Verdict.SUSPECT, reason="CacheSized")
    printed = show(placed([*ALL_LAYERS, cached], REPLICATED), tmp_path)
    assert "Left out, because their rates may be too high (CacheSized or PhasesApart): dd-000." in printed
    assert "Left out" not in show(placed(ALL_LAYERS, REPLICATED), tmp_path)


def test_searches_for_the_line_are_named_and_left_out(tmp_path: Path) -> None:
    printed = show(placed([*ALL_LAYERS, searched(point="fast-000")], REPLICATED), tmp_path)
    assert "Left out, because a search for the line has no rate of its own: fast-000." in printed


def test_json_has_base_units_and_the_point(tmp_path: Path) -> None:
    rows = json.loads(show(placed(ALL_LAYERS, REPLICATED), tmp_path, "-o", "json"))
    (write,) = [row for row in rows if (row["layer"], row["operation"]) == ("RADOS", "write")]
    assert write["bytesPerSecond"] == {
        "value": 240,
        "point": "r-1",
        "limit": 300,
        "limitedBy": "OSD",
        "efficiency": 0.8,
        "verdict": "Valid",
    }


def test_suspect_rates_have_a_mark_as_in_reports() -> None:
    results = golden(CEPH)
    assert {result.status.verdict for result in results} == {Verdict.SUSPECT}
    (run,) = runs_of(results)
    (table,) = tables_of(layers_section([replace(run, layers=layers_of(results))]))
    lines = invoke("layers", CEPH, columns=120).splitlines()
    for row, line in zip(texts(table), lines[1:], strict=False):
        assert row[2].endswith(" *")
        assert row[2] in line
        assert row[-1] == "Suspect"
    assert "* its point is Suspect or not finished; plimsoll results shows why" in lines


def test_valid_rates_have_no_mark(tmp_path: Path) -> None:
    assert "*" not in show(placed(ALL_LAYERS, REPLICATED), tmp_path)


def test_without_a_layout_osds_set_no_limit(tmp_path: Path) -> None:
    assert "The pool's layout is unknown" in show(placed(ALL_LAYERS, None), tmp_path)


def test_the_network_limits_layers_by_its_pairs_of_which_one_sends_at_a_time() -> None:
    pairs = layer_result("n-0", "iperf3", {WRITE: (60, 0)})
    spec = pairs.spec.model_copy(update={"parameters": {}, "clients": 3})
    rows = layers_of([*ALL_LAYERS, pairs.model_copy(update={"spec": spec})])
    assert [*layer_sentences(rows)][:2] == [
        "RADOS reads reach 833 % of the limit set by the clients' network.",
        "RADOS writes reach 400 % of the limit set by the clients' network.",
    ]


def test_results_without_ceph_have_no_layers(tmp_path: Path) -> None:
    assert "has no information about a Ceph cluster" in show(ALL_LAYERS, tmp_path, code=1)


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (REPLICATED, 3),
        ({"type": "erasure", "dataChunks": 4, "codingChunks": 2, "metadata": REPLICATED}, 1.5),
        ({"type": "new"}, None),
    ],
)
def test_write_amplification_follows_from_the_layout(pool: dict[str, Any], expected: float | None) -> None:
    assert write_amplification(placed(ALL_LAYERS, pool)) == expected


def devices(path: Path, environment: dict[str, Any], *, clients: int = 1) -> str:
    """Return a file with the result of a run of one point."""
    one = layer_result("d-0", "fio", {WRITE: (400, 20)})
    spec = one.spec.model_copy(update={"clients": clients})
    status = one.status.model_copy(update={"environment": Environment.model_validate(environment)})
    file = path / "devices.json"
    file.write_text(json.dumps([one.model_copy(update={"spec": spec, "status": status}).model_dump(mode="json")]))
    return str(file)


def test_devices_of_another_run_are_the_lowest_layer(tmp_path: Path) -> None:
    file = devices(tmp_path, {"volumeDevice": "sdb"})
    lines = show(placed(ALL_LAYERS, REPLICATED), tmp_path, "--device-run", file).splitlines()
    assert lines[1].split()[:2] == ["Device", "write"]
    assert "OSD writes reach 75 % of the limit set by the devices." in lines
    assert "Device is the mean rate of one device, times 3 for the OSDs." in lines


@pytest.mark.parametrize(
    ("environment", "clients", "expected"),
    [
        ({"volumeFileSystem": "ext4"}, 1, "was not measured on block devices outside Ceph"),
        ({"volumeDevice": "rbd0", "ceph": {"fsid": "x"}}, 1, "was not measured on block devices outside Ceph"),
        ({"volumeDevice": "rbd0"}, 1, "was not measured on block devices outside Ceph"),
        (
            {"volumeDevice": "loop0", "storageClass": {"provisioner": "rook-ceph.rbd.csi.ceph.com"}},
            1,
            "was not measured on block devices outside Ceph",
        ),
        ({"volumeDevice": "sdb"}, 2, "2 clients, some on the same device"),
        ({"volumeDevice": ["sdb", "sdc"]}, 3, "3 clients, some on the same device"),
    ],
)
def test_a_run_that_does_not_show_what_a_device_does_is_refused(
    tmp_path: Path, environment: dict[str, Any], clients: int, expected: str
) -> None:
    file = devices(tmp_path, environment, clients=clients)
    assert expected in show(placed(ALL_LAYERS, REPLICATED), tmp_path, "--device-run", file, code=1)


@pytest.mark.parametrize(
    ("environment", "clients"),
    [
        ({"volumeDevice": ["sdb", "sdc"]}, 2),
        ({"volumeDevice": "loop1", "nodeCount": 3}, 3),
        ({"volumeDevice": [f"sd{letter}" for letter in "abcdefghijklmnop"]}, 24),
    ],
)
def test_clients_with_devices_of_their_own_are_accepted(
    tmp_path: Path, environment: dict[str, Any], clients: int
) -> None:
    file = devices(tmp_path, environment, clients=clients)
    assert "Device" in show(placed(ALL_LAYERS, REPLICATED), tmp_path, "--device-run", file)
