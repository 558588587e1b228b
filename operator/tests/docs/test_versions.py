"""What the chart and the pages tell of versions and definitions is what the code has.

The support table of the limits names the versions that the code refuses, and that of the README no others.
"""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from plimsoll.api.run import decode_run
from plimsoll.api.suite import decode_suite
from plimsoll.ceph.versions import EC_OPTIMIZATIONS_SINCE, OLDEST, age_problem, optimizations_problem

ROOT = Path(__file__).parents[3]
HEADER = "| | tested in every run | tested by hand | expected to work | known not to work |"
VERSION = re.compile(r"\d+(?:\.\d+)+")


def table_of(page: str) -> dict[str, list[str]]:
    """Return the cells of the support table after the first one, by that."""
    lines = (ROOT / page).read_text().splitlines()
    rows = lines[lines.index(HEADER) :]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[: rows.index("")]]
    return {first: rest for first, *rest in cells[2:]}


def test_the_short_table_claims_nothing_else() -> None:
    short, whole = table_of("README.md"), table_of("docs/reference/limits.md")
    assert list(short) == ["Ceph", "Rook", "Kubernetes"]
    for name, cells in short.items():
        for claimed, stated in zip(cells, whole[name], strict=True):
            assert set(VERSION.findall(claimed)) <= set(VERSION.findall(stated)), name
            assert bool(claimed) <= bool(stated), name


def test_what_does_not_work_is_what_is_refused() -> None:
    table = table_of("docs/reference/limits.md")
    tested, *_, refused = table["Ceph"]
    oldest = ".".join(map(str, OLDEST))
    assert f"before {oldest} (`CephTooOld`)" in refused
    assert f"`erasureCoded.optimizations` before {EC_OPTIMIZATIONS_SINCE} (`CephTooOld`)" in refused
    assert tested.startswith(oldest)
    assert age_problem("c", f"{oldest}.0") == optimizations_problem("c", f"{EC_OPTIMIZATIONS_SINCE}.0.0") == ""
    chart = yaml.safe_load((ROOT / "charts" / "plimsoll" / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == ">=1.31.0-0"
    assert table["Kubernetes"][-1].startswith("before 1.31 (")


@pytest.mark.parametrize("page", ["README.md", "charts/plimsoll/README.md", "docs/tutorials/quickstart.md"])
def test_pages_agree_on_what_you_need(page: str) -> None:
    oldest = yaml.safe_load((ROOT / "charts" / "plimsoll" / "Chart.yaml").read_text())["kubeVersion"]
    python = tomllib.loads((ROOT / "operator" / "pyproject.toml").read_text())["project"]["requires-python"]
    assert (
        f"Kubernetes and `kubectl` {oldest.removeprefix('>=').removesuffix('.0-0')} or later, "
        "Helm 3 from 3.17 on (Helm 4 is not tested), "
        f"and Python {python.removeprefix('>=')} or later for the kubectl plugin"
    ) in " ".join((ROOT / page).read_text().split())


def test_artifact_hub_is_told_what_the_chart_has() -> None:
    chart = yaml.safe_load((ROOT / "charts" / "plimsoll" / "Chart.yaml").read_text())
    prefix = "artifacthub.io/"
    told = {key.removeprefix(prefix): yaml.safe_load(text) for key, text in chart["annotations"].items()}
    definitions = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.plimsoll.dev.yaml")]
    versions = {(each["metadata"]["name"], each["spec"]["names"]["kind"]) for each in definitions}
    assert {(each["name"], each["kind"]) for each in told["crds"]} == versions
    assert {each["image"].rpartition(":")[2] for each in told["images"]} == {chart["appVersion"]}
    run, suite = told["crdsExamples"]
    assert decode_run(run).spec.workloads
    assert decode_suite(suite).spec.comparisons
    # What Artifact Hub accepts; there is no signature yet.
    assert {each["kind"] for each in told["changes"]} <= {
        "added",
        "changed",
        "deprecated",
        "removed",
        "fixed",
        "security",
    }
    assert "signKey" not in told
    pages = [link["url"].partition("/blob/main/")[2] for link in told["links"]]
    assert [page for page in pages if page and not (ROOT / page).exists()] == []
