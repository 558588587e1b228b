"""The matrix of a point on the terminal, servers in a plan, and servers of a local run."""

import io
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli import main
from plimsoll.cli.results import show_results
from plimsoll.conductor.sink import RESULTS_DIRECTORY
from plimsoll.tools.registry import TOOLS
from support.results import full_mesh, matrix, matrix_point
from support.specs import KEY, PAIRS

SLOW = full_mesh(range(3), range(3)) | {(2, 0): 94.0}


def shown(*results: BenchmarkResult, width: int = 120) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    show_results(console, list(results))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_the_slowest_links_are_below_the_table() -> None:
    lines = shown(matrix_point(matrix(SLOW)))
    start = lines.index("w-000 (randread 4Ki qd1), slowest of 6 links")
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["From", "To", "Mbit/s", "lowest", "Mbit/s", "Retransmits"],
        ["client", "2", "(n2)", "client", "0", "(n0)", "94*", "94", "-"],
        ["client", "0", "(n0)", "client", "1", "(n1)", "937", "937", "-"],
    ]
    assert "* far below comparable pairs (LinkOutlier)" in lines


def test_of_many_links_only_the_slowest_are_shown() -> None:
    mesh = full_mesh(range(30), range(30)) | {(2, 0): 94.0}
    lines = shown(matrix_point(matrix(mesh)), width=80)
    assert any(line.split() == ["client", "2", "(n2)", "client", "0", "(n0)", "94*", "94", "-"] for line in lines)
    assert "w-000 (randread 4Ki qd1), slowest of 870 links" in lines
    assert sum(line.startswith("client ") for line in lines) == 10


def test_points_without_a_matrix_have_none() -> None:
    assert not any("slowest of" in line for line in shown(matrix_point(None)))


def test_documents_contain_it(tmp_path: Path) -> None:
    directory = tmp_path / RESULTS_DIRECTORY
    directory.mkdir()
    (directory / "one.json").write_text(matrix_point(matrix(SLOW)).model_dump_json())
    output = CliRunner().invoke(main, ["results", str(tmp_path), "-o", "json"]).output
    (document,) = json.loads(output)
    found = document["status"]["summary"]["matrix"]
    assert (found["clients"], found["outliers"]) == ([0, 0, 1, 1, 2, 2], [4])


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(TOOLS, KEY, PAIRS)
    path = tmp_path / "run.yaml"
    document = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "run"},
        "spec": {
            "clients": {"count": 3},
            "servers": {"placement": "Selected", "nodeSelector": {"disk": "fast"}, "count": 4},
            "workloads": [{"name": "w", KEY: {}, "runtimeSeconds": 10, "rampSeconds": 2}],
            "repetitions": 2,
        },
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_plan_shows_servers_and_rounds(manifest: Path) -> None:
    output = CliRunner().invoke(main, ["plan", str(manifest)]).output
    assert "4, numbered after the clients, on Selected disk=fast" in output
    assert "per trial, one after the other: w-000: 12" in output
    assert "0:06:00" in output


def test_a_local_run_has_no_servers(manifest: Path, tmp_path: Path) -> None:
    found = CliRunner().invoke(
        main, ["run", str(manifest), "--directory", str(tmp_path), "--results", str(tmp_path / "o")]
    )
    assert found.exit_code == 1
    assert "requires a network between nodes; remove the workload" in found.output
    assert not (tmp_path / "o").exists()
