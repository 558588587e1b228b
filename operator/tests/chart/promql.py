"""What promtool says of expressions, and what they read."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.metrics.catalogue import METRICS, MetricType


def promtool(*arguments: str | Path) -> str:
    """Run it and return what it says; what it does not accept fails the test, and so does its absence."""
    path = shutil.which(os.environ.get("PLIMSOLL_PROMTOOL", ""))
    if path is None:
        message = (
            "PLIMSOLL_PROMTOOL names no promtool; run `make test-all`, or PLIMSOLL_PROMTOOL=$(hack/tool.sh promtool)"
        )
        pytest.fail(message, pytrace=False)
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout


FOREIGN = {
    "ALERTS": {"alertname", "alertstate", "severity", "namespace", "run", "suite"},
    "process_resident_memory_bytes": set[str](),
    "process_cpu_seconds_total": set[str](),
}
"""What the chart reads besides, with its labels: of Prometheus itself, and of every program."""

TARGET_LABELS = {"job", "instance", "pod", "cluster"}
"""What Prometheus adds to every series; `cluster` if somebody makes it so. `namespace` is a label of Plimsoll's too."""

_STRING = re.compile(r'"[^"]*"')
_WORD = re.compile(r"\b[a-zA-Z_]\w*\b(?!\s*\()")
_SELECTOR = re.compile(r"\b([a-zA-Z_]\w*)\{([^}]*)\}")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_LISTED = re.compile(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)")
_MADE = re.compile(r'label_join\(.*,\s*"(\w+)",\s*" · "')
_PARTS = {"_bucket": {"le"}, "_count": set[str](), "_sum": set[str]()}


def labels_by_name() -> dict[str, set[str]]:
    """Return the name of every series that may be read, with its labels."""
    found = {name: set(labels) for name, labels in FOREIGN.items()}
    for metric in METRICS:
        if metric.kind is MetricType.HISTOGRAM:
            found |= {metric.name + part: {*metric.labels, *labels} for part, labels in _PARTS.items()}
        else:
            found[metric.name] = set(metric.labels)
    return found


def names_of(expr: str) -> set[str]:
    bare = _STRING.sub('""', expr)
    return {word for word in _WORD.findall(bare) if word.startswith("plimsoll_") or word in FOREIGN}


def problems_of(expr: str) -> Iterator[str]:
    """Yield what an expression reads that is not there."""
    known = labels_by_name()
    names = names_of(expr)
    if not names:
        yield "it reads no series"
    yield from (f"there is no {name}" for name in names - known.keys())
    for name, matchers in _SELECTOR.findall(expr):
        named = set(_MATCHER.findall(_STRING.sub('""', matchers)))
        yield from (f"{name} has no label {label}" for label in named - known.get(name, set()) - TARGET_LABELS)
    made = set(_MADE.findall(expr)) | TARGET_LABELS
    there = made.union(*(known.get(name, set()) for name in names), {"namespace"})
    for listed in _LISTED.findall(expr):
        yield from (f"nothing has a label {label}" for label in set(re.findall(r"\w+", listed)) - there)


def counters_without_rate(expr: str) -> set[str]:
    """Return the counters that an expression reads as they are: they grow for ever, and begin anew with a process."""
    counters = {metric.name for metric in METRICS if metric.kind is MetricType.COUNTER}
    rated = set(re.findall(r"\b(?:rate|increase)\((\w+)", expr))
    growing = {name for name in names_of(expr) if name in counters or name.endswith(("_bucket", "_count", "_sum"))}
    return growing - rated
