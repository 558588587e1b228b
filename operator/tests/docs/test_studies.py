"""The guide to the studies agrees with their data, their suites and the estimates of these."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.hypothesis import CLIENTS, Hypothesis
from plimsoll.api.names import Metric
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.measure.hypotheses.decide import Decision, decide
from plimsoll.measure.summary import MINIMUM_TRIALS
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.expand import estimate
from plimsoll.studies.library import load_studies, load_study
from plimsoll.studies.model import Experiment, Study, Unavailable, Unit
from plimsoll.suite.children import variant_plans, variant_runs
from plimsoll.tools.base import Timing
from plimsoll.tools.dd import DdParameters
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.rados_bench import TAIL_SECONDS, RadosBench, RadosBenchParameters
from plimsoll.tools.registry import TOOLS
from support.results import point, run_of_points
from support.studies import OVERLAYS, small_plans, small_suites, suites_in

RADOS_BENCH = RadosBench()


def volume_bytes(plan: Plan) -> int:
    """Return what the volumes take in the pools that the run makes, with all copies."""
    return estimate(plan).stored_bytes or 0


def written_seconds(plan: Plan) -> int:
    """Return for how long a trial of `rados bench` writes at most, times the copies of its pool."""
    points = [point for point in plan.points if point.tool == RADOS_BENCH.key]
    if not points:
        return 0
    assert plan.ceph is not None
    assert plan.ceph.made is not None
    replicated = plan.ceph.made.replicated
    assert replicated is not None
    return replicated.size * max(_seconds(point) for point in points)


def client_bytes(run: BenchmarkRun, plan: Plan) -> int:
    """Return the memory of a client: what it requests, its limit, or the largest buffers of a workload."""
    given = [of for of in run.spec.clients.resources.values() if isinstance(of, dict)]
    stated = [parse_quantity(of["memory"]) for of in given if "memory" in of]
    return max(stated + [_buffer_bytes(point) for point in plan.points])


def _seconds(point: Point) -> int:
    """Return how long objects are written before a read, or by a write, whose objects are kept until it ends."""
    parameters = RadosBenchParameters.model_validate(point.parameters)
    timing = Timing(ramp_seconds=point.ramp_seconds, runtime_seconds=point.runtime_seconds)
    if parameters.reads_data:
        return parameters.preparation_seconds(timing)
    return timing.ramp_seconds + timing.runtime_seconds + TAIL_SECONDS


def _buffer_bytes(point: Point) -> int:
    match TOOLS[point.tool].parameters.model_validate(point.parameters):
        case FioParameters(block_sizes=sizes, io_depth=depth, jobs=jobs):
            return max(sizes) * depth * jobs
        case RadosBenchParameters(object_size=size, concurrency=concurrency):
            return size * concurrency
        case DdParameters(block_size=size):
            return size
        case _:
            return 0


SCATTER = (0.99, 1.0, 1.01)
_IN_KIB_OR_MS = {
    Unit.KIBIBYTES_PER_SECOND: 1,
    Unit.MEBIBYTES_PER_SECOND: 2**10,
    Unit.MILLISECONDS: 1,
    Unit.MICROSECONDS: 1e-3,
}
_BLOCKS = {"4Ki": "4 KiB", "16Mi": "16 MiB"}


def on_values(suite: str) -> dict[str, str]:
    """Return the verdicts on a suite's hypotheses that the study has numbers for: one, or those of each case.

    The hypotheses are those of the full form, whose ranges of clients are the study's.
    """
    return {name: _verdicts(_full(suite)[name], cases) for name, cases in _given(suite).items()}


def _verdicts(given: Hypothesis, cases: "Cases") -> str:
    found = {case: str(_decided(given, sides).verdict) for case, sides in cases.items()}
    if len({*found.values()}) == 1:
        return next(iter(found.values()))
    return "; ".join(f"{case}: {verdict}" for case, verdict in found.items())


@cache
def _full(suite: str) -> Mapping[str, Hypothesis]:
    (found,) = [one for one in suites_in(Path("overlays/full") / suite) if one.metadata.name == suite]
    return {one.name: one for one in found.spec.hypotheses}


def in_layouts() -> dict[str, Counter[str]]:
    """Return how many of CTU's 15 layouts have which verdict, for each hypothesis."""
    names = [one.name for one in small_suites()["ctu"].spec.hypotheses]
    return {name: Counter(_in_each_layout(name)) for name in names}


def _in_each_layout(name: str) -> Iterator[str]:
    (given,) = [one for one in small_suites()["ctu"].spec.hypotheses if one.name == name]
    assert given.of is not None
    layouts = dict.fromkeys(one.conditions["layout"] for one in load_study("ctu").values if "layout" in one.conditions)
    for layout in [one for one in layouts if _has_all(str(one))]:
        sides = [_of_ctu(selector.model_dump(), str(layout)) for selector in (given.left, given.of)]
        yield str(_decided(given, (sides[0], sides[1])).verdict)


def _has_all(layout: str) -> bool:
    return any(
        (one.experiment, one.conditions.get("layout")) == ("CTU-SEQ4", layout) for one in load_study("ctu").values
    )


def _of_ctu(selector: Mapping[str, object], layout: str) -> float:
    """Return the published value that a selector means; without a variant that of Ceph."""
    workload, where = str(selector["workload"]), selector["where"]
    assert isinstance(where, dict)
    operation = "write" if "write" in workload or where.get("operation") == "Write" else "read"
    system = "3PAR" if selector["variant"] == "array" else "Ceph"
    wanted: dict[str, object] = {"layout": layout, "system": system, "operation": operation}
    match workload, str(selector["quantity"]):
        case "latency", _:
            quantity = "latency with ioping"
        case _, "meanLatency":
            quantity = "latency with fio"
        case (("seq4-read" | "seq16-read"), _):
            quantity = "mean throughput"
            wanted["blockSize"] = "4 MiB" if workload == "seq4-read" else "16 MiB"
        case _:
            quantity = "throughput"
            wanted |= {"blockSize": _BLOCKS[where["blockSize"]], "ioDepth": 1}
    (value,) = [
        one
        for one in load_study("ctu").values
        if one.quantity == quantity and one.experiment != "CTU-SMALL" and wanted.items() <= one.conditions.items()
    ]
    return value.value * _IN_KIB_OR_MS[value.unit]


Sides = tuple[float, float] | Mapping[int, float]
"""The values of left and of; for scaling, those along the axis."""

Cases = Mapping[str, Sides]
"""Each number that a study published about a hypothesis, by what it is the number of; "" if it is the only one."""


def _given(suite: str) -> Mapping[str, Cases]:
    return {"kit": _of_kit, "ornl": _of_ornl, "utsa": _of_utsa}[suite]()


def _of_kit() -> dict[str, Cases]:
    gains = _values("KIT-F4c", "gain of 16 MB over 4 MB")
    losses = _values("KIT-F2ab", "loss")
    gaps = _values("KIT-F5", "RADOS below RBD")
    osds = _values("KIT-OSD", "write throughput of an OSD")
    disk = _value("KIT-DISK", None)
    linear = _linear_up_to()
    return {
        "reads-scale-with-osds": {"": (_value("KIT-F3", "throughput with 16 OSDs divided by that with 8"), 1)},
        "reads-scale-with-clients": {"": linear["read"]},
        "writes-scale-with-clients": {
            f"journal {place}": linear[f"write, journal {place}"] for place in ("on disk", "in memory")
        },
        "rbd-costs": {end: (100, 100 - gap) for end, gap in gaps.items()},
        "osd-below-half-of-its-disk": {
            "journal on disk": (osds["disk"], disk),
            "journal in memory": (osds["memory"], disk),
        },
        "replicas-cost-writes": {"": (100 - losses["write"], 100)},
        "replicas-cost-no-reads": {"": (100 - losses["read"], 100)},
        "larger-objects-write-faster": {statistic: (100 + gain, 100) for statistic, gain in gains.items()},
        "buffering-gains-little": {"": (100 + _value("KIT-BUF", None), 100)},
    }


def _linear_up_to() -> dict[str, Mapping[int, float]]:
    """Return KIT's throughput with 1 to 8 clients: as fast as the network up to a number of clients, then constant."""
    network = _value("KIT-NET", None)
    saturating = _values("KIT-F4ab", "clients up to which throughput is at the network's limit")
    return {
        case: {clients: network * min(clients, most) for clients in range(1, 9)} for case, most in saturating.items()
    }


def _of_ornl() -> dict[str, Cases]:
    kernel = [one for one in load_study("ornl").values if one.experiment == "ORNL-KRN" and one.unit == "MB/s"]
    rados = {str(one.conditions["operation"]): one.value for one in kernel if one.conditions["kernel"] == "3.9"}
    cephfs = _values("ORNL-F8", "highest throughput")
    raw = _values("ORNL-T1", "throughput of 4 hosts")["28 SATA"]
    return {
        "rados-of-raw": {"figure 8": (cephfs["RADOS, read"], raw), "kernel 3.9": (rados["read"], 1000 * raw)},
        "cephfs-reads-of-rados": {
            end: (cephfs[f"CephFS, read, {end}"], cephfs["RADOS, read"]) for end in ("lowest", "highest")
        },
        "cephfs-writes-of-rados": {"": (1000 * cephfs["CephFS, write"], rados["write"])},
    }


def _of_utsa() -> dict[str, Cases]:
    reads = _by_threads("UTSA-T5", "bandwidth")
    writes, seconds = _by_threads("UTSA-T6", "writes"), _by_threads("UTSA-T6", "time")
    means = {
        name: _mean("UTSA-T" + name, f"throughput with {tool}") for name, tool in (("8", "iperf"), ("9", "netcat"))
    }
    return {
        "reads-decline-slowly": {"": reads},
        "writes-decline-slowly": {"": {threads: count / seconds[threads] for threads, count in writes.items()}},
        "reads-gain-little": {"": reads},
        "netcat-is-the-limit": {"": (means["9"], means["8"])},
    }


def _values(experiment: str, quantity: str | None) -> dict[str, float]:
    """Return values by their only varying condition."""
    return {
        str([*one.conditions.values()][-1] if one.conditions else ""): one.value
        for one in load_study(experiment.partition("-")[0].lower()).values
        if one.experiment == experiment and quantity in (None, one.quantity)
    }


def _value(experiment: str, quantity: str | None) -> float:
    (value,) = _values(experiment, quantity).values()
    return value


def _by_threads(experiment: str, quantity: str) -> dict[int, float]:
    return {int(threads): value for threads, value in _values(experiment, quantity).items()}


def _mean(experiment: str, quantity: str) -> float:
    found = [one.value for one in load_study("utsa").values if (one.experiment, one.quantity) == (experiment, quantity)]
    return sum(found) / len(found)


def _decided(given: Hypothesis, sides: Sides) -> Decision:
    """Decide the form of a hypothesis on these values, whatever it selects, and whatever the unit of its quantity."""
    document = given.model_dump(mode="json", exclude_none=True) | {
        side: {"workload": side, "quantity": Metric.IOPS.value} for side, _ in given.selectors
    }
    if isinstance(sides, tuple):
        points = [point(f"{side}-000", _around(value)) for side, value in zip(("left", "of"), sides, strict=True)]
    else:
        axis = str(given.over)
        points = [
            _on_axis(f"left-{number:03d}", value, axis, place) for number, (place, value) in enumerate(sides.items())
        ]
    (decision,) = decide(Hypothesis.model_validate(document), [run_of_points(*points)])
    return decision


def _on_axis(name: str, value: float, axis: str, place: int) -> BenchmarkResult:
    if axis == CLIENTS:
        return point(name, _around(value), clients=place)
    parameters: dict[str, Any] = {axis: place}
    return point(name, _around(value), **parameters)


def _around(value: float) -> list[float]:
    return [value * one for one in SCATTER]


ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "how-to" / "studies.md").read_text()
STUDIES = load_studies()
FULL = [suite for overlay in OVERLAYS if overlay.parts[1] == "full" for suite in suites_in(overlay)]
MEASURED = [*small_suites().values(), *FULL]
GIGABYTE = 10**9


def rows(after: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table with that first heading after a text."""
    rest = GUIDE[GUIDE.index(after) :]
    lines = rest[rest.index(f"| {heading} |") :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def reproduction(experiment: Experiment) -> str:
    texts = [f"`{one.suite}`, {listed(one.variants)}: {listed(one.workloads)}" for one in experiment.reproduced_by]
    return "; ".join(texts) or "impossible"


@pytest.mark.parametrize("study", STUDIES, ids=lambda one: one.key)
def test_experiments_are_those_of_the_data(study: Study) -> None:
    found = rows(f"## {study.key}\n", "experiment")
    assert [row[:3] for row in found] == [[one.id, one.title, reproduction(one)] for one in study.experiments]
    assert all(row[3] for row in found)


def test_what_is_unavailable_is_that_of_the_data() -> None:
    of = {
        kind: ", ".join(one.id for study in STUDIES for one in study.experiments if one.unavailable is kind)
        for kind in Unavailable
    }
    assert [row[:2] for row in rows("## What cannot be reproduced\n", "what")] == [
        [kind.value, ids] for kind, ids in of.items()
    ]


def seconds(plans: dict[str, Plan], suite: BenchmarkSuite) -> int:
    return suite.spec.repeat * sum(estimate(plan).total_seconds for plan in plans.values())


def scaled(kind: str) -> dict[str, int]:
    """Return the seconds of the suites of an overlay."""
    suites = [suite for overlay in OVERLAYS if overlay.parts[1] == kind for suite in suites_in(overlay)]
    return {suite.metadata.name: seconds(variant_plans(suite, seed=1), suite) for suite in suites}


def test_estimates_are_those_of_the_plans() -> None:
    full, smoke = scaled("full"), scaled("smoke")
    expected = []
    for name, suite in small_suites().items():
        plans = small_plans()[name]
        points = sum(len(plan.points) for plan in plans.values())
        costs = [ceil(smoke[name] / 60), ceil(seconds(plans, suite) / 60), ceil(full[name] / 3600)]
        texts = [f"{cost} {unit}" for cost, unit in zip(costs, ("min", "min", "h"), strict=True)]
        expected.append([f"`{name}`", str(len(plans)), str(points), *texts])
    found = rows("## Suites\n", "suite")
    assert [[row[0], *row[2:]] for row in found] == expected


def test_small_suites_take_minutes() -> None:
    for plans in small_plans().values():
        assert sum(estimate(plan).total_seconds for plan in plans.values()) < 20 * 60


@pytest.mark.parametrize("suite", MEASURED, ids=lambda suite: f"{suite.metadata.name}-{len(suite.spec.variants)}")
def test_every_hypothesis_has_points_with_three_trials(suite: BenchmarkSuite) -> None:
    plans = variant_plans(suite, seed=1)
    assert suite.spec.hypotheses
    for hypothesis in suite.spec.hypotheses:
        for _, selector in hypothesis.selectors:
            variants = [selector.variant] if selector.variant else [*plans]
            trials = [plans[variant].repetitions * suite.spec.repeat for variant in variants]
            assert min(trials) >= MINIMUM_TRIALS, hypothesis.name


def test_the_space_of_the_full_forms_is_that_of_the_plans() -> None:
    expected = {}
    for suite in FULL:
        runs, plans = variant_runs(suite), variant_plans(suite, seed=1)
        volumes = max(map(volume_bytes, plans.values()))
        seconds = max(map(written_seconds, plans.values()))
        total = max(volume_bytes(plan) + GIGABYTE * written_seconds(plan) for plan in plans.values())
        memory = max(client_bytes(runs[name], plan) for name, plan in plans.items())
        expected[f"`{suite.metadata.name}`"] = [
            f"{ceil(volumes / 2**30)} GiB",
            str(seconds),
            f"{ceil(total / GIGABYTE)} GB",
            f"{ceil(memory / 2**30)} GiB",
        ]
    found = rows("### The space that the full forms need\n", "suite")
    assert {name: rest for name, *rest in found} == expected


def test_numbers_of_values_are_those_of_the_data() -> None:
    expected = [[study.key, str(len(study.experiments)), str(len(study.values))] for study in STUDIES]
    assert [row[:3] for row in rows("## Published values\n", "study")] == expected


def test_checks_are_those_of_the_table() -> None:
    known = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "reference" / "checks.md").read_text(), re.MULTILINE))
    named = {
        check
        for study in STUDIES
        for row in rows(f"## {study.key}\n", "numbers")
        for check in re.findall(r"`(\w+)`", row[1])
    }
    assert len(named) >= 10
    assert named <= known


@pytest.mark.parametrize("study", ["KIT", "ORNL", "UTSA"])
def test_hypotheses_have_the_verdicts_of_the_published_values(study: str) -> None:
    found = {row[0].strip("`"): row[1] for row in rows(f"## {study}\n", "hypothesis")}
    names = [one.name for one in small_suites()[study.lower()].spec.hypotheses]
    verdicts = on_values(study.lower())
    assert found == {name: verdicts.get(name, "no numbers") for name in names}


def test_hypotheses_of_ctu_have_the_verdicts_of_its_layouts() -> None:
    counts = in_layouts()
    assert {sum(count.values()) for count in counts.values()} == {15}
    assert [[row[0], *map(int, row[1:])] for row in rows("## CTU\n", "hypothesis")] == [
        [f"`{name}`", *(count[verdict] for verdict in ("Held", "Refuted", "Undecided"))]
        for name, count in counts.items()
    ]
