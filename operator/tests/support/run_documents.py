"""Small runs as users write them, and what is said of those that cannot be used."""

from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.run import decode_run, load_run

CLUSTER = {"namespace": "r", "name": "r"}
CEPH = {"monitors": ["192.0.2.1"], "user": "u", "keyringSecret": {"name": "k"}, "pool": {"name": "p"}}


def document(**spec: Any) -> dict[str, Any]:
    """Return a small run; `spec` replaces parts of its specification."""
    parts = {
        "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
        "clients": {"count": 2},
        "workloads": [workload()],
    }
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "run"},
        "spec": parts | spec,
    }


def workload(**fields: Any) -> dict[str, Any]:
    return {"name": "w", "fio": {"blockSize": ["4Ki"]}} | fields


def problems(given: str | dict[str, Any]) -> list[str]:
    with pytest.raises(SpecError) as caught:
        _ = load_run(given) if isinstance(given, str) else decode_run(given)
    assert str(caught.value).splitlines() == [str(problem) for problem in caught.value.problems]
    return [str(problem) for problem in caught.value.problems]
