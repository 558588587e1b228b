"""`plimsoll layers`: the bottom-up table of a Ceph cluster."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli import main
from plimsoll.cli.layers import write_amplification
from support.layers import RUN

REPLICATED = {"type": "replicated", "size": 3, "pgNum": 64}


def placed(results: Sequence[BenchmarkResult], pool: dict[str, Any] | None) -> list[BenchmarkResult]:
    """Return the results as measured on Ceph, on a pool of that layout."""
    environment = {"ceph": {"fsid": "x"}} | ({"pool": pool} if pool else {})
    return [
        one.model_copy(update={"status": one.status.model_copy(update={"environment": environment})}) for one in results
    ]


def show(results: Sequence[BenchmarkResult], path: Path, *arguments: str, code: int = 0) -> str:
    file = path / "results.json"
    file.write_text(json.dumps([one.model_dump(mode="json") for one in results]))
    found = CliRunner().invoke(main, ["layers", str(file), *arguments])
    assert found.exit_code == code, found.output
    return found.output


def test_table_reads_every_layer_against_the_one_below(tmp_path: Path) -> None:
    lines = show(placed(RUN, REPLICATED), tmp_path).splitlines()
    cells = [line.split() for line in lines]
    assert cells[0] == ["Layer", "Op", "MiB/s", "Limit", "Of", "it", "IOPS", "Limit", "Of", "it"]
    assert [line[:2] for line in cells[1:6]] == [
        ["OSD", "write"],
        ["RADOS", "read"],
        ["RADOS", "write"],
        ["RBD", "read"],
        ["RBD", "write"],
    ]
    assert "For each byte of a client's the pool writes 3." in lines
    assert "80 %" in lines[3]


def test_json_has_base_units_and_the_point(tmp_path: Path) -> None:
    rows = json.loads(show(placed(RUN, REPLICATED), tmp_path, "-o", "json"))
    (write,) = [row for row in rows if (row["layer"], row["operation"]) == ("RADOS", "write")]
    assert write["bytesPerSecond"] == {"value": 240, "point": "r-1", "limit": 300, "efficiency": 0.8}


def test_without_a_layout_osds_set_no_limit(tmp_path: Path) -> None:
    assert "The pool's layout is not known" in show(placed(RUN, None), tmp_path)


def test_what_is_not_known_to_be_ceph_has_no_layers(tmp_path: Path) -> None:
    assert "was not measured on a Ceph cluster" in show(RUN, tmp_path, code=1)


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (REPLICATED, 3),
        ({"type": "erasure", "dataChunks": 4, "codingChunks": 2, "metadata": REPLICATED}, 1.5),
        ({"type": "new"}, None),
    ],
)
def test_write_amplification_follows_from_the_layout(pool: dict[str, Any], expected: float | None) -> None:
    assert write_amplification(placed(RUN, pool)) == expected
