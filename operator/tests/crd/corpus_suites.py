"""Every constraint on what surrounds the parts of a run in a suite."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crd.manifests import REMOVED, Manifest, bounds, choice, flag, missing, refused, unknown
from support.full_documents import FULL_SUITE

_SELECTOR = FULL_SUITE["spec"]["hypotheses"][0]["of"]
_OTHER = FULL_SUITE["spec"]["hypotheses"][0]["left"]
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
    refused(
        "candidate of rounds",
        f"{_UPGRADE}.candidate",
        {"variant": "a"},
        "[1].candidate",
        "must have the variant to judge",
    ),
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
    refused("scaling with percent", f"{_SCALING}.atLeastPercent", 1, "cannot have exponentAtLeast"),
    refused("ratio with one variant", f"{_RATIO}.left.variant", REMOVED, "must have a variant in both left and of"),
    refused(
        "ratio out of order", f"{_RATIO}.atMostPercent", 99, "[0].atMostPercent", "must be at least atLeastPercent"
    ),
    refused("unknown left", f"{_RATIO}.left.variant", "c", "as left.variant in every entry"),
    refused("unknown of", f"{_RATIO}.of.variant", "c", "as of.variant in every entry"),
    Manifest(
        name="ratio without expectation",
        changes={f"{_RATIO}.atLeastPercent": REMOVED, f"{_RATIO}.atMostPercent": REMOVED},
        says=("must be either a ratio or scaling",),
    ),
    Manifest(
        name="scaling without expectation",
        changes={f"{_SCALING}.exponentAtLeast": REMOVED, f"{_SCALING}.exponentAtMost": REMOVED},
        says=("must be either a ratio or scaling",),
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
