"""The hypotheses of the studies' suites, decided on the studies' own numbers.

A published value stands for three trials that scatter by 1 %; the studies' own scatter is mostly unknown. A study that
published several numbers, such as both ends of a range, decides a hypothesis on each of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from plimsoll.api.hypothesis import CLIENTS, Hypothesis, Quantity
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.hypotheses.decide import Decision, decide
from plimsoll.studies.library import load_study
from plimsoll.studies.shares import Unit
from support.hypotheses import point, run
from support.studies import small_suites, suites_in

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
        side: {"workload": side, "quantity": Quantity.IOPS.value} for side, _ in given.selectors
    }
    if isinstance(sides, tuple):
        points = [point(f"{side}-000", _around(value)) for side, value in zip(("left", "of"), sides, strict=True)]
    else:
        axis = str(given.over)
        points = [
            _on_axis(f"left-{number:03d}", value, axis, place) for number, (place, value) in enumerate(sides.items())
        ]
    (decision,) = decide(Hypothesis.model_validate(document), [run(*points)])
    return decision


def _on_axis(name: str, value: float, axis: str, place: int) -> BenchmarkResult:
    if axis == CLIENTS:
        return point(name, _around(value), clients=place)
    parameters: dict[str, Any] = {axis: place}
    return point(name, _around(value), **parameters)


def _around(value: float) -> list[float]:
    return [value * one for one in SCATTER]
