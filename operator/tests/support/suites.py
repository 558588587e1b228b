"""Suites for the API server: whole ones, and every constraint on what surrounds the parts of a run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plimsoll.api.names import ConditionStatus, SuiteConditionType
from plimsoll.api.status import SuiteCondition
from plimsoll.api.suite_status import (
    ActiveRound,
    Baseline,
    BenchmarkSuiteStatus,
    Cause,
    ComparisonOutcome,
    ComparisonVerdict,
    EndedRound,
    HypothesisOutcome,
    HypothesisResult,
    RoundChildren,
    RoundVerdict,
    SuiteDisplay,
)
from support.manifests import REMOVED, Manifest, bounds, choice, flag, missing, refused, unknown

_TIME = "2026-03-01T03:00:00Z"
_SELECTOR = {
    "workload": "w",
    "where": {"blockSize": "4Ki", "ioDepth": 1, "directIo": True, "clients": 2},
    "quantity": "iops",
}
_OTHER = {"workload": "w", "where": {"ioDepth": 16, "clients": 2}, "quantity": "iops"}

FULL_SUITE: Mapping[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "BenchmarkSuite",
    "metadata": {"name": "layouts", "namespace": "default"},
    "spec": {
        "schedule": {"cron": "0 3 * * 0", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 3600},
        "triggers": {"cephVersion": True},
        "repeat": 5,
        "keep": 20,
        "run": {
            "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
            "clients": {"count": 2, "nodeSelector": {"disk": "ssd"}},
            "workloads": [{"name": "w", "fio": {"blockSize": ["4Ki"], "ioDepth": [1, 4, 16]}, "clients": [1, 2]}],
        },
        "variants": [
            {"name": "a", "unset": [], "set": {}},
            {"name": "b", "unset": ["clients.nodeSelector.disk"], "set": {"repetitions": 3}},
        ],
        "comparisons": [
            {
                "name": "costs",
                "baseline": {"variant": "a"},
                "candidate": {"variant": "b"},
                "allow": {"ratePercent": 6, "latencyPercent": 12},
            },
            {"name": "upgrade", "baseline": {"rounds": "Accepted"}, "allow": {"ratePercent": 5, "latencyPercent": 10}},
        ],
        "hypotheses": [
            {
                "name": "deep",
                "left": _OTHER | {"variant": "a", "operation": "read"},
                "of": _SELECTOR | {"variant": "b", "operation": "read"},
                "atLeastPercent": 100,
                "atMostPercent": 900,
            },
            {
                "name": "scales",
                "left": {"workload": "w", "where": {"clients": 2}, "quantity": "bytesPerSecond"},
                "over": "ioDepth",
                "range": {"first": 1, "last": "1Ki"},
                "exponentAtLeast": "0.1",
                "exponentAtMost": "1.1",
            },
        ],
        "gate": True,
        "suspend": False,
    },
}

_STATUS = BenchmarkSuiteStatus(
    observed_generation=1,
    conditions=tuple(
        SuiteCondition(
            type=kind,
            status=ConditionStatus.UNKNOWN,
            observed_generation=1,
            last_transition_time=_TIME,
            reason="Measuring",
            message="round 29540340: run 3 of 10",
        )
        for kind in SuiteConditionType
    ),
    digest="0123456789abcdef" * 4,
    requested_round="before the upgrade",
    requested_minute=29540340,
    accepted_round="29540340",
    next_schedule_time=_TIME,
    last_schedule_time=_TIME,
    ceph_version="18.2.7",
    round=ActiveRound(
        minute=29540340,
        seed=29540340,
        cause=Cause.SCHEDULED,
        start_time=_TIME,
        children=RoundChildren(done=2, total=10),
        current="layouts-a-4d2f5-29540340-1",
        current_uid="01234567-89ab-cdef-0123-456789abcdef",
    ),
    abandoned_run="layouts-b-4d2f5-29530260-0",
    rounds=(
        EndedRound(
            minute=29530260,
            cause=Cause.CHANGE,
            start_time=_TIME,
            completion_time=_TIME,
            verdict=RoundVerdict.NO_REGRESSION,
            complete=True,
            accepted=True,
            pinned=True,
            former=True,
            digest="0123456789abcdef" * 4,
            environment={"ceph": "18.2.7", "kernel": "6.1.0", "kubernetes": "1.34.1"},
            comparisons={"NoRegression": 2, "Inconclusive": 1},
        ),
    ),
    baseline=Baseline(first=29530260, since=29530270),
    dropped=(29520180, 29510100),
    comparisons=(
        ComparisonOutcome(
            name="costs",
            variant="b",
            verdict=ComparisonVerdict.REGRESSION,
            message="b has 12 % less IOPS than a",
            estimate=-0.12,
            low=-0.15,
            high=-0.09,
            drift=False,
        ),
    ),
    comparisons_left_out=384,
    hypotheses_left_out=1,
    hypotheses=(
        HypothesisResult(
            name="deep",
            variant="a",
            verdict=HypothesisOutcome.HELD,
            message="w reaches 400 % (380 to 420) of the IOPS of w: Held.",
            estimate=4.0,
            low=3.8,
            high=4.2,
        ),
    ),
    display=SuiteDisplay(status="Measuring", progress="2/10", verdict="NoRegression", message="run 3 of 10"),
)
FULL_SUITE_STATUS: dict[str, Any] = _STATUS.model_dump(mode="json", exclude_none=True)

_COSTS, _UPGRADE = "spec.comparisons.0", "spec.comparisons.1"
_RATIO, _SCALING = "spec.hypotheses.0", "spec.hypotheses.1"
_FREE = "the operator reads it, and reports what is wrong in the condition Stalled"


def _field(path: str) -> str:
    return path.replace(".0", "[0]").replace(".1", "[1]")


def _number(path: str, low: int, high: int) -> list[Manifest]:
    """Return what is below and above the bounds of a number."""
    return [
        refused(f"{path} too low", path, low - 1, _field(path), f"greater than or equal to {low}"),
        refused(f"{path} too high", path, high + 1, _field(path), f"less than or equal to {high}"),
    ]


def _text(path: str, most: int, *, form: str = "") -> list[Manifest]:
    """Return texts that are too long, and of another form."""
    long = refused(f"{path} too long", path, "a" * (most + 1), _field(path), f"may not be more than {most} bytes")
    return [long, *([refused(f"{path} form", path, form, _field(path), "should match")] if form else [])]


def _list(path: str, most: int, entry: Mapping[str, Any]) -> Manifest:
    entries = [{**entry, "name": f"n{number}"} for number in range(most + 1)]
    return refused(f"{path} too many", path, entries, path, f"must have at most {most} items")


def _twice(path: str, entry: Mapping[str, Any]) -> Manifest:
    return refused(f"{path} twice", path, [entry, entry], f"{path}[1]", "Duplicate value")


def _selector(path: str) -> list[Manifest]:
    return [
        missing_in(path, "workload"),
        missing_in(path, "quantity"),
        *_text(f"{path}.workload", 32, form="- -"),
        *_text(f"{path}.variant", 20, form="- -"),
        refused(f"{path} quantity", f"{path}.quantity", "p98", _field(path), '"p99.99"'),
        refused(f"{path} operation", f"{path}.operation", "erase", _field(path), '"trim"'),
        refused(
            f"{path} where",
            f"{path}.where",
            {f"k{n}": 1 for n in range(17)},
            f"{_field(path)}.where",
            "at most 16 items",
        ),
    ]


def missing_in(path: str, name: str) -> Manifest:
    return refused(f"{path} without {name}", f"{path}.{name}", REMOVED, f"{_field(path)}.{name}", "Required value")


def _of_suites(manifests: list[Manifest]) -> list[Manifest]:
    return [replace(one, base=FULL_SUITE) for one in manifests]


_SURROUNDINGS = [
    refused("suite name too long", "metadata.name", "s" * 31, "metadata.name must have at most 30 characters"),
    refused("suite name with dot", "metadata.name", "a.b", "metadata.name must consist of lower-case letters"),
    unknown("spec.repeats"),
    *bounds("spec.repeat", 1, 10),
    *bounds("spec.keep", 1, 50),
    *bounds("spec.schedule.startingDeadlineSeconds", 10, 365 * 24 * 3600),
    *flag("spec.triggers.cephVersion"),
    *flag("spec.gate"),
    *flag("spec.suspend"),
    missing("spec.run"),
    missing("spec.variants"),
    missing("spec.schedule.cron"),
    *_text("spec.schedule.cron", 256, form="@daily"),
    *_text("spec.schedule.timeZone", 64, form="Europe/../Berlin x"),
]
_VARIANTS = [
    refused("no variants", "spec.variants", [], "spec.variants", "should have at least 1 items"),
    _list("spec.variants", 16, {}),
    _twice("spec.variants", {"name": "a"}),
    missing_in("spec.variants.0", "name"),
    *_text("spec.variants.0.name", 20, form="- -"),
    refused("too many unset", "spec.variants.0.unset", [f"f{n}" for n in range(33)], "must have at most 32 items"),
    refused("unset twice", "spec.variants.0.unset", ["clients", "clients"], "unset[1]", "Duplicate value"),
    refused("unset nothing", "spec.variants.0.unset", [""], "unset[0]", "should be at least 1 chars long"),
    refused("unset too long", "spec.variants.0.unset", ["f" * 257], "unset[0]", "may not be more than 256 bytes"),
]
_COMPARISONS = [
    _list("spec.comparisons", 32, {"baseline": {"rounds": "Accepted"}}),
    _twice("spec.comparisons", {"name": "c", "baseline": {"rounds": "Accepted"}}),
    missing_in(_COSTS, "name"),
    missing_in(_COSTS, "baseline"),
    *_text(f"{_COSTS}.name", 63, form="- -"),
    *_text(f"{_COSTS}.baseline.variant", 20, form="- -"),
    *_text(f"{_COSTS}.candidate.variant", 20, form="- -"),
    *choice(f"{_UPGRADE}.baseline.rounds", "Accepted"),
    *_number(f"{_COSTS}.allow.ratePercent", 1, 90),
    *_number(f"{_COSTS}.allow.latencyPercent", 2, 1000),
    missing_in(f"{_COSTS}.candidate", "variant"),
    refused("no baseline", f"{_UPGRADE}.baseline", {}, "must have exactly one of variant and rounds"),
    refused("two baselines", f"{_COSTS}.baseline.rounds", "Accepted", "must have exactly one of variant and rounds"),
    refused("no candidate", f"{_COSTS}.candidate", REMOVED, "[0].candidate", "must have the variant to judge"),
    refused("candidate of rounds", f"{_UPGRADE}.candidate", {"variant": "a"}, "[1].candidate", "cannot be set with"),
    refused(
        "candidate is baseline", f"{_COSTS}.candidate.variant", "a", "candidate.variant", "must be another variant"
    ),
    refused("unknown baseline", f"{_COSTS}.baseline.variant", "c", "as baseline.variant in every entry"),
    refused("unknown candidate", f"{_COSTS}.candidate.variant", "c", "as candidate.variant in every entry"),
]
_HYPOTHESES = [
    _list("spec.hypotheses", 64, {"left": _SELECTOR, "of": _OTHER, "atLeastPercent": 1}),
    _twice("spec.hypotheses", {"name": "h", "left": _SELECTOR, "of": _OTHER, "atLeastPercent": 1}),
    missing_in(_RATIO, "name"),
    missing_in(_RATIO, "left"),
    *_text(f"{_RATIO}.name", 63, form="- -"),
    *_text(f"{_SCALING}.over", 64, form="- -"),
    *_text(f"{_SCALING}.exponentAtLeast", 16, form="much"),
    *_text(f"{_SCALING}.exponentAtMost", 16, form="much"),
    *_text(f"{_SCALING}.range.first", 32, form="- -"),
    *_text(f"{_SCALING}.range.last", 32, form="- -"),
    *_number(f"{_RATIO}.atLeastPercent", 1, 1_000_000),
    *_number(f"{_RATIO}.atMostPercent", 1, 1_000_000),
    *_selector(f"{_RATIO}.left"),
    *_selector(f"{_RATIO}.of"),
    refused("ratio and scaling", f"{_RATIO}.over", "ioDepth", "must be either a ratio or scaling"),
    refused("neither ratio nor scaling", f"{_SCALING}.over", REMOVED, "must be either a ratio or scaling"),
    refused("ratio with exponent", f"{_RATIO}.exponentAtLeast", "1", "cannot have exponentAtLeast"),
    refused("scaling with percent", f"{_SCALING}.atLeastPercent", 1, "cannot have atLeastPercent"),
    refused("ratio with one variant", f"{_RATIO}.left.variant", REMOVED, "must have a variant in both left and of"),
    refused(
        "ratio out of order", f"{_RATIO}.atMostPercent", 99, "[0].atMostPercent", "must be at least atLeastPercent"
    ),
    refused("unknown left", f"{_RATIO}.left.variant", "c", "as left.variant in every entry"),
    refused("unknown of", f"{_RATIO}.of.variant", "c", "as of.variant in every entry"),
    Manifest(
        name="ratio without expectation",
        changes={f"{_RATIO}.atLeastPercent": REMOVED, f"{_RATIO}.atMostPercent": REMOVED},
        says=("has no expectation; add atLeastPercent or atMostPercent",),
    ),
    Manifest(
        name="scaling without expectation",
        changes={f"{_SCALING}.exponentAtLeast": REMOVED, f"{_SCALING}.exponentAtMost": REMOVED},
        says=("has no expectation; add exponentAtLeast or exponentAtMost",),
    ),
]
_PARTS = [
    refused(f"{part} {name}", f"{part}.{name}", value, f'unknown field "{_field(part)}.{name}"')
    for part in ("spec.run", "spec.variants.0.set")
    for name, value in (
        ("cleanup", "Never"),
        ("results", "Retain"),
        ("suspend", True),
        ("ttlSecondsAfterFinished", 60),
    )
]

REFUSED_SUITES = _of_suites([*_SURROUNDINGS, *_VARIANTS, *_COMPARISONS, *_HYPOTHESES, *_PARTS])
"""One violation of every constraint outside of the parts of a run; the models refuse each of them too."""

OPEN_SUITES = _of_suites(
    [
        Manifest(name=name, changes=changes, server_accepts=_FREE)
        for name, changes in (
            ("no such minute", {"spec.schedule.cron": "61 * * * *"}),
            ("no such day", {"spec.schedule.cron": "0 0 */31 2 1#5"}),
            ("no such time zone", {"spec.schedule.timeZone": "Europe/Atlantis"}),
            ("units differ", {f"{_RATIO}.of.quantity": "p99"}),
            ("range out of order", {f"{_SCALING}.range.first": "2Ki"}),
            ("exponents out of order", {f"{_SCALING}.exponentAtLeast": "2"}),
        )
    ]
)
"""What only the operator refuses, because rules in CEL would be too long or cannot know."""
