"""Runs to plan."""

from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.api.run import BenchmarkRun, decode_run

MakeRun = Callable[..., BenchmarkRun]


@pytest.fixture
def make_run() -> MakeRun:
    """Return a factory of runs with these workloads; other keywords replace parts of the specification."""
    return _run


def _run(*workloads: dict[str, Any], **spec: Any) -> BenchmarkRun:
    parts: dict[str, Any] = {
        "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
        "clients": {"count": 8},
        "workloads": [{"name": f"w{number}", **fields} for number, fields in enumerate(workloads)],
        "repetitions": 2,
    }
    return decode_run(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": "run", "namespace": "bench", "uid": "u"},
            "spec": {key: value for key, value in (parts | spec).items() if value is not None},
        }
    )
