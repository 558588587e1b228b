"""What Rook does alike for objects of every kind: finalizers, phases, and waiting for a usable cluster."""

from abc import ABC, abstractmethod

from cluster import KIND as CLUSTER_KIND
from cluster import is_usable
from release import Release
from worker import Recorder

from kube import Api, Object

_WAIT_SECONDS = 10.0


class Controller(ABC):
    """The reconciliation of one kind."""

    kind: str
    component: str

    def __init__(self, api: Api, release: Release) -> None:
        self._api = api
        self.release = release
        self._events = Recorder(api, self.component, release)

    def reconcile(self, found: Object) -> float | None:
        """Make or remove what an object specifies; `found` is then the object as it was after its adoption."""
        if "deletionTimestamp" in found["metadata"]:
            if self._finalizer in found["metadata"].get("finalizers", []):
                self._remove(found)
                self._release(found)
            return None
        if self._adopt(found):
            return 0
        if not any(is_usable(cluster, self.release) for cluster in self._api.list(CLUSTER_KIND)):
            return _WAIT_SECONDS
        status = found.get("status", {})
        if not status.get("phase"):
            status = {"phase": "Progressing"} | self._first_status(found["spec"])
            self._report(found, status)
        ready = {"phase": "Ready", "observedGeneration": found["metadata"]["generation"]}
        self._report(found, ready | self._make(found | {"status": status}))
        return None

    def _adopt(self, found: Object) -> bool:
        """Add the finalizer and complete the specification; return whether that is another generation of the object."""
        metadata = found["metadata"]
        finalizers = metadata.get("finalizers", [])
        if self._finalizer in finalizers:
            return False
        adopted = metadata | {"finalizers": [*finalizers, self._finalizer]}
        completed = found | {"metadata": adopted, "spec": self._completed(found["spec"])}
        found.update(self._api.replace(self.kind, completed))
        return bool(found["metadata"]["generation"] != metadata["generation"])

    @abstractmethod
    def _completed(self, spec: Object) -> Object:
        """Return a specification as Rook's types serialize it."""

    @abstractmethod
    def _first_status(self, spec: Object) -> Object:
        """Return the status, without the phase, of an object that is being made."""

    @abstractmethod
    def _make(self, found: Object) -> Object:
        """Make what the object specifies, and return its status without phase and generation. It can be repeated."""

    @abstractmethod
    def _remove(self, found: Object) -> None:
        """Remove what was made for the object; it can be repeated."""

    @property
    def _finalizer(self) -> str:
        return f"{self.kind.lower()}.ceph.rook.io"

    def _release(self, found: Object) -> None:
        left = [each for each in found["metadata"]["finalizers"] if each != self._finalizer]
        self._api.patch(self.kind, found["metadata"]["name"], {"metadata": {"finalizers": left}})
        self._events.inform(found, "ReconcileSucceeded", "successfully removed finalizer")

    def _report(self, found: Object, status: Object) -> None:
        self._api.patch_status(self.kind, found["metadata"]["name"], status)
