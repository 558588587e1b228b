"""The suites of the studies in `manifests/studies`, with their overlays applied, and a measured round of one."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plimsoll.api.environment import Environment
from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult, ResultStatus, Trial
from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.conductor.sink import result_of
from plimsoll.measure.summary import summarise
from plimsoll.plan.document import Plan, Point
from plimsoll.suite.children import variant_plans
from support.results import osds, trials_at

FOLDER = Path(__file__).parents[3] / "manifests" / "studies"
STUDIES = ("kit", "ornl", "utsa", "ctu", "blog")
OVERLAYS = tuple(sorted(path.parent.relative_to(FOLDER) for path in FOLDER.glob("overlays/*/*/kustomization.yaml")))


def built(kustomization: Path) -> list[dict[str, Any]]:
    document = yaml.safe_load((kustomization / "kustomization.yaml").read_text())
    assert document.keys() <= {"apiVersion", "kind", "resources", "patches"}
    objects: list[dict[str, Any]] = []
    for resource in document["resources"]:
        path = (kustomization / resource).resolve()
        objects += built(path) if path.is_dir() else yaml.safe_load_all(path.read_text())
    for patch in document.get("patches", []):
        (target,) = [one for one in objects if one["metadata"]["name"] == patch["target"]["name"]]
        assert target["kind"] == patch["target"]["kind"]
        _patch(target, yaml.safe_load(patch["patch"]))
    return objects


@cache
def small_suites() -> dict[str, BenchmarkSuite]:
    """Return the suites as they are in the repository, by their names."""
    found = [suite for study in STUDIES for suite in suites_in(Path(study))]
    assert len({suite.metadata.name for suite in found}) == len(found)
    return {suite.metadata.name: suite for suite in found}


def suites_in(folder: Path) -> list[BenchmarkSuite]:
    """Return the suites of a kustomization below `manifests/studies`."""
    return [decode_suite(document) for document in built(FOLDER / folder)]


@cache
def small_plans() -> dict[str, dict[str, Plan]]:
    return {name: variant_plans(suite, seed=1) for name, suite in small_suites().items()}


def _patch(document: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    """Apply a JSON patch (RFC 6902) with the operations that the overlays use."""
    for one in operations:
        *parents, last = one["path"].removeprefix("/").split("/")
        place: Any = document
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        key: Any = int(last) if isinstance(place, list) and last != "-" else last
        match one["op"]:
            case "add" if isinstance(place, list):
                place.insert(len(place) if key == "-" else key, deepcopy(one["value"]))
            case "add":
                place[key] = deepcopy(one["value"])
            case "replace":
                assert place[key] != one["value"], f"{one['path']} already has that value"
                place[key] = deepcopy(one["value"])
            case "remove":
                del place[key]
            case "test":
                assert place[key] == one["value"], one
            case other:
                raise AssertionError(f"operation {other} is not supported here")


DEMO = FOLDER.parents[1] / "e2e" / "studies" / "demo"
SCATTER = (0.99, 1.0, 1.01)
MINUTE = 29_000_000
MEGABYTE = 10**6
DEVICE = "loop3"
CEPH = {
    "versions": "18.2.7 reef",
    "osds": {"up": 3, "hosts": 3, "objectStores": {"bluestore": 3}, "kernels": {"6.1.0": 3}},
}

RATES: Mapping[str, float] = {
    "osds-all/write": 20,
    "osds-all/read": 30,
    "osds-all/rbd": 22,
    "osds-all/write-sizes": 20,
    "osds-all/read-sizes": 30,
    "osds-all/osd": 30,
    "osds-all/tcp": 111,
    "osds-few/write": 10,
    "osds-few/read": 50 / 3,
    "osds-more/write": 20,
    "osds-more/read": 95 / 3,
    "size-3/write-sizes": 12,
    "size-3/read-sizes": 30,
    "disk/disk": 72,
}
"""MB/s of each client, by variant and workload."""


def demo_document() -> dict[str, Any]:
    (document,) = built(DEMO)
    return document


def results_of(variant: str, plan: Plan, suspect: Sequence[str] = (), device: str = DEVICE) -> list[BenchmarkResult]:
    plan = plan.model_copy(update={"run": plan.run.model_copy(update={"uid": f"{variant}-uid"})})
    if variant == "disk":
        environment = {"kernel": "6.1.0", "volumeDevice": device, "nodeCount": 1}
    else:
        environment = {"ceph": CEPH, "pool": {"type": "replicated", "size": 3 if variant == "size-3" else 1}}
    results = []
    for point in plan.points:
        trials = _trials(point, RATES[f"{variant}/{point.workload}"] * MEGABYTE)
        numbers = summarise(trials, len(trials), None)
        status = ResultStatus(
            trials=tuple(trials),
            summary=numbers.summary,
            verdict=Verdict.SUSPECT if point.workload in suspect else numbers.verdict,
            findings=numbers.findings,
            environment=Environment.model_validate(environment),
            final=True,
        )
        results.append(result_of(plan, point, status))
    return results


def _trials(point: Point, bytes_per_second: float) -> list[Trial]:
    """Return three trials; an OSD is measured alone, whatever the number of clients."""
    block = 2**20
    rate = bytes_per_second * (1 if point.tool == "osdBench" else point.clients) / block
    kind = Operation.READ if point.workload.startswith("read") else Operation.WRITE
    found = trials_at([rate * one for one in SCATTER], block=block, kind=kind)
    if point.tool != "osdBench":
        return found
    return [one.model_copy(update={"osds": osds(3, round(bytes_per_second), rate)}) for one in found]
