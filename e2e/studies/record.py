"""Print what the suites of a namespace measured, as CSV: `record.py NAMESPACE`.

One line for each operation of each point; `storage` is Ceph, or the StorageClass of storage that is not Ceph.
`operator/tests/golden/studies` has the lines of the studies' small forms on the test cluster: they show which
experiments ran, not what any Ceph can do. Older files lack `storage`.
"""

# ruff: noqa: INP001 - a script, run by path, that prints
import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

FIELDS = (
    "suite",
    "variant",
    "workload",
    "point",
    "label",
    "clients",
    "operation",
    "iops",
    "bytesPerSecond",
    "verdict",
    "reasons",
    "storage",
)


def objects(kind: str, namespace: str) -> list[dict[str, Any]]:
    """Return all objects of a kind."""
    command = ["kubectl", "--namespace", namespace, "get", kind, "--output", "json"]
    found: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["items"]
    return found


def storage_of(storage: dict[str, Any]) -> str:
    """Return the name of the StorageClass, Ceph without one, or nothing if a run has no storage."""
    if not storage:
        return ""
    name: str = storage.get("storageClass", {}).get("name", "Ceph")
    return name


def lines(namespace: str) -> Iterator[dict[str, Any]]:
    """Yield a line for each operation of each point that was measured."""
    runs = {run["metadata"]["name"]: run for run in objects("benchmarkruns", namespace)}
    for result in objects("benchmarkresults", namespace):
        spec, status = result["spec"], result.get("status", {})
        if "verdict" not in status:
            continue
        run = runs[spec["run"]]
        common = {
            "suite": run["metadata"]["labels"]["plimsoll.dev/suite"],
            "variant": run["metadata"]["labels"]["plimsoll.dev/variant"],
            "workload": spec["workload"],
            "point": spec["point"],
            "label": spec["label"],
            "clients": spec["clients"],
            "verdict": status["verdict"],
            "reasons": " ".join(sorted({finding["reason"] for finding in status["findings"]})),
            "storage": storage_of(run["spec"].get("storage", {})),
        }
        for operation in status["summary"]["operations"]:
            rates = {name: round(operation[name]["mean"]) for name in ("iops", "bytesPerSecond") if operation.get(name)}
            yield common | {"operation": operation["operation"]} | rates


def main() -> None:
    """Print the lines in the order of suites, variants and points."""
    writer = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
    writer.writeheader()
    for line in sorted(lines(sys.argv[1]), key=lambda one: [str(one.get(field, "")) for field in FIELDS]):
        writer.writerow(line)


if __name__ == "__main__":
    main()
