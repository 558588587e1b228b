"""An existing pool of any Ceph cluster, without Rook."""

from collections.abc import Sequence
from typing import ClassVar

from plimsoll.api.reasons.reason import Reason
from plimsoll.ceph.document import monitor_keys
from plimsoll.lifecycle.ceph import common
from plimsoll.lifecycle.ceph.common import ExternalObjects
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.storage.claims import Claims
from plimsoll.lifecycle.storage.seam import Look, Provider, Resource, StorageSpec, View


class CephProvider(Provider):
    """A pool that the run names, with the addresses of monitors and a keyring."""

    is_polled: ClassVar[bool] = True

    def provides(self, storage: StorageSpec) -> bool:
        """Whether the run names the monitors of a Ceph cluster."""
        return bool(storage.get("ceph"))

    def targets(self, storage: StorageSpec) -> frozenset[str]:
        """Return the monitors, each of which identifies the cluster: a run may name only one."""
        return frozenset(f"ceph/{key}" for key in monitor_keys(storage["ceph"].get("monitors") or ()))

    def resources(self, view: View) -> Sequence[Resource]:
        """Return the record, the existing pool, and access to it."""
        there = view.seen.external
        if not isinstance(there, ExternalObjects):
            return [common.Unseen(), Claims(view=view)]
        return [
            common.Record(view=view, there=there),
            ExistingPool(view=view, there=there),
            common.Access(view=view, there=there),
            Claims(view=view),
            common.Leftovers(view=view, there=there),
        ]

    def kept(self, view: View) -> Sequence[str]:
        """Return what is needed to reach the images."""
        return view.seen.external.kept if isinstance(view.seen.external, ExternalObjects) else ()

    def look(self, view: View) -> Look[ExternalObjects] | None:
        """Return the look at the operator's namespace; None before the run is admitted."""
        if view.run.start_time is None:
            return None
        return common.look_at_ceph(view.settings.namespace, view.run.identity)


class ExistingPool(common.CephResource):
    """The pool."""

    def ready(self) -> Fact:
        """Return that it exists, which only the conductor can check."""
        return Fact.true(Reason.READY, f"existing pool {' and '.join(self.target.pools)}; the conductor checks it")
