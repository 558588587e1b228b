"""A round of the suite of `make demo-study` as a directory has it, with rates like those of the study."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from plimsoll.api.environment import Environment
from plimsoll.api.names import Operation, RunPhase, Verdict
from plimsoll.api.result import BenchmarkResult, ResultStatus, Trial
from plimsoll.api.status import RunState
from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.cli.suite_round import RoundStart
from plimsoll.conductor.sink import result_of
from plimsoll.measure.summary import summarise
from plimsoll.plan.document import Plan, Point
from plimsoll.suite.children import children_of, suite_digest, variant_plans
from support.hypotheses import trials
from support.layers import osds
from support.studies import FOLDER, built

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


def demo_suite() -> BenchmarkSuite:
    """Return the suite of the demo."""
    return decode_suite(demo_document())


def kit_round(path: Path, *, without: Sequence[str] = (), suspect: Sequence[str] = (), **named: str) -> Path:
    """Write a round, and return its directory; variants `without` are not measured, workloads may be Suspect.

    `named` may have another `study`, and another `device` of the variant disk.
    """
    document = demo_document()
    document["metadata"]["annotations"] = {"plimsoll.dev/study": named.get("study", "kit")}
    path.mkdir(exist_ok=True)
    (path / "suite.yaml").write_text(yaml.safe_dump(document))
    suite = decode_suite(document)
    targets: dict[str, tuple[str, ...]] = {variant.name: ("/data",) for variant in suite.spec.variants}
    start = RoundStart(minute=MINUTE, seed=1, digest=suite_digest(suite.spec), targets=targets)
    (path / "round.json").write_text(start.model_dump_json())
    plans = variant_plans(suite, seed=1)
    for child in children_of(suite, minute=MINUTE, seed=1):
        if child.variant not in without:
            results = results_of(child.variant, plans[child.variant], suspect, named.get("device", DEVICE))
            _write(path / child.name, results)
    return path


def demo_document() -> dict[str, Any]:
    """Return the suite of the demo as its kustomization builds it."""
    (document,) = built(DEMO)
    return document


def results_of(variant: str, plan: Plan, suspect: Sequence[str] = (), device: str = DEVICE) -> list[BenchmarkResult]:
    """Return the results of a variant's run."""
    if variant == "disk":
        environment = {"kernel": "6.1.0", "volumeDevice": device, "nodeCount": 1}
    else:
        environment = {"ceph": CEPH, "pool": {"type": "replicated", "size": 3 if variant == "size-3" else 1}}
    found = Environment.model_validate(environment)
    return [_result(variant, plan, point, found, is_suspect=point.workload in suspect) for point in plan.points]


def _write(directory: Path, results: Sequence[BenchmarkResult]) -> None:
    (directory / "results").mkdir(parents=True)
    for found in results:
        (directory / "results" / f"{found.spec.point}.json").write_text(found.model_dump_json())
    (directory / "state.json").write_text(RunState(phase=RunPhase.COMPLETE).model_dump_json())


def _result(variant: str, plan: Plan, point: Point, environment: Environment, *, is_suspect: bool) -> BenchmarkResult:
    found = _trials(point, RATES[f"{variant}/{point.workload}"] * MEGABYTE)
    numbers = summarise(found, len(found), None)
    status = ResultStatus(
        trials=tuple(found),
        summary=numbers.summary,
        verdict=Verdict.SUSPECT if is_suspect else numbers.verdict,
        findings=numbers.findings,
        environment=environment,
        final=True,
    )
    return result_of(plan, point, status)


def _trials(point: Point, bytes_per_second: float) -> list[Trial]:
    """Return three trials; an OSD is measured alone, whatever the number of clients."""
    block = 2**20
    rate = bytes_per_second * (1 if point.tool == "osdBench" else point.clients) / block
    kind = Operation.READ if point.workload.startswith("read") else Operation.WRITE
    found = trials([rate * one for one in SCATTER], block=block, kind=kind)
    if point.tool != "osdBench":
        return found
    return [one.model_copy(update={"osds": osds(3, round(bytes_per_second), rate)}) for one in found]
