"""The hypotheses of the studies' suites, decided on the studies' own numbers.

A published value stands for three trials that scatter by 1 %; the studies' own scatter is mostly unknown.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.api.hypothesis import CLIENTS, Hypothesis, Quantity
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.hypotheses.decision import Decision, decide
from plimsoll.studies.library import load_study
from plimsoll.studies.published import Unit
from support.hypotheses import point, run
from support.studies import small_suites

SCATTER = (0.99, 1.0, 1.01)
_IN_KIB_OR_MS = {
    Unit.KIBIBYTES_PER_SECOND: 1,
    Unit.MEBIBYTES_PER_SECOND: 2**10,
    Unit.MILLISECONDS: 1,
    Unit.MICROSECONDS: 1e-3,
}
_BLOCKS = {"4Ki": "4 KiB", "16Mi": "16 MiB"}


def on_values(suite: str) -> dict[str, str]:
    """Return the verdicts on a suite's hypotheses that the study has numbers for."""
    return {name: str(_decided(_hypothesis(suite, name), sides).verdict) for name, sides in _given(suite).items()}


def in_layouts() -> dict[str, Counter[str]]:
    """Return how many of CTU's 15 layouts have which verdict, for each hypothesis."""
    names = [one.name for one in small_suites()["ctu"].spec.hypotheses]
    return {name: Counter(_in_each_layout(name)) for name in names}


def _in_each_layout(name: str) -> Iterator[str]:
    given = _hypothesis("ctu", name)
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


def _given(suite: str) -> dict[str, Sides]:
    return {"kit": _of_kit, "ornl": _of_ornl, "utsa": _of_utsa}[suite]()


def _of_kit() -> dict[str, Sides]:
    gain = _values("KIT-F4c", "gain of 16 MB over 4 MB")["mean past saturation"]
    rados_below_rbd = _values("KIT-F5", "RADOS below RBD")["lowest"]
    return {
        "reads-scale-with-osds": (_value("KIT-F3", "throughput with 16 OSDs divided by that with 8"), 1),
        "reads-scale-with-clients": {clients: 111 * clients for clients in range(1, 6)},
        "rbd-costs": (100, 100 - rados_below_rbd),
        "journal-limits": (_values("KIT-OSD", "write throughput of an OSD")["disk"], _value("KIT-DISK", None)),
        "replicas-cost-no-reads": (100 - _values("KIT-F2ab", "loss")["read"], 100),
        "larger-objects-write-faster": (100 + gain, 100),
        "buffering-gains-little": (100 + _value("KIT-BUF", None), 100),
    }


def _of_ornl() -> dict[str, Sides]:
    kernel = [one for one in load_study("ornl").values if one.experiment == "ORNL-KRN" and one.unit == "MB/s"]
    rados = {str(one.conditions["operation"]): one.value for one in kernel if one.conditions["kernel"] == "3.9"}
    cephfs = _values("ORNL-F8", "highest throughput")
    return {
        "rados-of-raw": (rados["read"], 11000),
        "cephfs-reads-of-rados": (cephfs["CephFS, read, highest"], cephfs["RADOS, read"]),
        "cephfs-writes-of-rados": (1000 * cephfs["CephFS, write"], rados["write"]),
    }


def _of_utsa() -> dict[str, Sides]:
    reads = _by_threads("UTSA-T5", "bandwidth")
    writes, seconds = _by_threads("UTSA-T6", "writes"), _by_threads("UTSA-T6", "time")
    means = {
        name: _mean("UTSA-T" + name, f"throughput with {tool}") for name, tool in (("8", "iperf"), ("9", "netcat"))
    }
    return {
        "reads-decline-slowly": reads,
        "writes-decline-slowly": {threads: count / seconds[threads] for threads, count in writes.items()},
        "reads-gain-little": reads,
        "netcat-is-the-limit": (means["9"], means["8"]),
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


def _hypothesis(suite: str, name: str) -> Hypothesis:
    (found,) = [one for one in small_suites()[suite].spec.hypotheses if one.name == name]
    return found


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
