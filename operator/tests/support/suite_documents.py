"""Small suites as users write them."""

from typing import Any

RUN = {
    "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
    "clients": {"count": 2},
    "workloads": [
        {"name": "reads", "fio": {"blockSize": ["4Ki"], "ioDepth": [1, 16]}, "runtimeSeconds": 20},
        {"name": "writes", "fio": {"pattern": "randwrite"}},
    ],
    "repetitions": 3,
}
VARIANTS = [
    {"name": "small", "set": {}},
    {"name": "large", "set": {"workloads": [{"name": "reads", "fio": {"blockSize": ["64Ki"]}}]}},
]


def large_run(points: int) -> dict[str, Any]:
    """Return a run of ten trials at each of these points."""
    reads = {"name": "reads", "fio": {"ioDepth": [*range(1, points + 1)]}, "runtimeSeconds": 20}
    return RUN | {"workloads": [reads], "repetitions": 10, "timeouts": {"totalSeconds": 86400}}


def suite_document(name: str = "sizes", **spec: Any) -> dict[str, Any]:
    """Return a suite of two variants; `spec` replaces parts of its specification."""
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkSuite",
        "metadata": {"name": name},
        "spec": {"run": RUN, "variants": VARIANTS} | spec,
    }
