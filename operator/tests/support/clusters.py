"""What the command line takes for a cluster: a connection to a pretended API, and files that say where it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from plimsoll.kube.port import Kind
from support.fake_kube import FakeKube, Key

_COLUMNS = {
    "Run": "spec.run",
    "Point": "spec.label",
    "Clients": "spec.clients",
    "Op": "status.display.operation",
    "IOPS": "status.display.iops",
    "P99": "status.display.p99",
    "Trials": "status.display.trials",
    "Verdict": "status.verdict",
    "Reason": "status.display.reason",
}
"""Of `kubectl get benchmarkresults`."""


class ConnectedKube(FakeKube):
    """A cluster as a connection to it: the API is the same at every connection."""

    connections = 0

    async def __aenter__(self) -> Self:
        self.connections += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def drop(self, kind: Kind, namespace: str, name: str) -> None:
        """Take an object away at once."""
        self._objects.pop(Key(kind, namespace, name))

    async def table(self, kind: Kind, *, namespace: str, labels: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """Return the columns of results."""
        found = await self.list(kind, namespace=namespace, labels=labels)
        return [
            {"Name": one["metadata"]["name"], **{name: _at(one, path) for name, path in _COLUMNS.items()}}
            for one in found
        ]


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        document = document.get(part) if isinstance(document, dict) else None
    return document


def context_file(path: Path, *, current: str | None, contexts: Mapping[str, str | None]) -> str:
    """Write a kubeconfig with contexts, name -> namespace; returns its path."""
    entries = [
        {"name": name, "context": {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})}
        for name, namespace in contexts.items()
    ]
    document = {"apiVersion": "v1", "kind": "Config", "contexts": entries, "users": [], "clusters": []}
    path.write_text(yaml.safe_dump(document | ({"current-context": current} if current is not None else {})))
    return str(path)
