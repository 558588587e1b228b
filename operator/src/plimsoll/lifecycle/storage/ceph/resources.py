"""The base class of resources in a Ceph cluster, and those that exist with and without Rook."""

from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.api.reasons.reason import Reason
from plimsoll.ceph.conf import monitors_of
from plimsoll.lifecycle.actions import Action, Create, deletion, deletions
from plimsoll.lifecycle.decision import Fact, Teardown
from plimsoll.lifecycle.render import teardown as render
from plimsoll.lifecycle.storage.ceph.facts import ExternalObjects
from plimsoll.lifecycle.storage.seam import Resource, View
from plimsoll.plan.document import CephTarget, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class CephResource(Resource):
    """A resource of an admitted run on Ceph."""

    view: View
    there: ExternalObjects

    @property
    def plan(self) -> Plan:
        """Return the frozen plan.

        Raises:
            ValueError: there is none.

        """
        if self.view.plan is None:
            raise ValueError(f"run {self.view.run.name} has no plan")
        return self.view.plan

    @property
    def target(self) -> CephTarget:
        """Return the run's part of the Ceph cluster.

        Raises:
            ValueError: the frozen plan names no Ceph cluster.

        """
        if self.plan.ceph is None:
            raise ValueError(f"the plan of run {self.view.run.name} names no Ceph cluster")
        return self.plan.ceph

    @property
    def monitors(self) -> tuple[str, ...]:
        """Return the addresses of the cluster's monitors; empty if they are not known yet."""
        return self.target.monitors or monitors_of(self.there.monitors)


class Unseen(Resource):
    """The storage of a run that is not admitted: nothing was created or observed."""

    def ready(self) -> Fact:
        """Return that the run cannot start yet."""
        return Fact.false(Reason.POOL_NOT_READY, "inspecting the Ceph cluster")


class Record(CephResource):
    """The record of what has to be removed, in the operator's namespace; removed together with the teardown Job."""

    def desired(self) -> Iterable[Action]:
        """Return the record's creation."""
        record = render.record_of(self.plan)
        if self.there.record is not None or record is None:
            return ()
        return [Create(obj=render.record_config_map(self.view.run, record, self.monitors, self.view.settings))]

    def ready(self) -> Fact:
        """Return whether the record exists."""
        return hidden_fact(holds=self.there.record is not None)

    def remove(self) -> Teardown | None:
        """Return the deletion of the Job, its NetworkPolicy and the record."""
        there = self.there
        if there.is_empty:
            return None
        records = [child for child in (there.record, there.network_policy) if child is not None]
        jobs = [deletion(job.child, foreground=True) for job in there.jobs if not job.child.deleting]
        return removal_step("deleting the teardown record", *jobs, *deletions(records))


def hidden_fact(*, holds: bool) -> Fact:
    """Return whether a resource is ready, as a fact that no status shows."""
    return Fact.true(Reason.READY) if holds else Fact.false(Reason.IN_PROGRESS)


def removal_step(message: str, *actions: Action, reason: Reason = Reason.IN_PROGRESS) -> Teardown:
    """Return an unfinished step of a removal."""
    return Teardown(actions=actions, fact=Fact.false(reason, message))
