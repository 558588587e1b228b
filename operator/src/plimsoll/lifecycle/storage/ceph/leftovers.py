"""What a run leaves in a Ceph cluster: images, objects and flags, and the Job that removes them.

Nothing is forced: the operator waits for the removal, and the status shows what it waits for.
"""

from dataclasses import replace
from typing import ClassVar

from plimsoll.api.reasons.reason import Reason
from plimsoll.api.status import format_time
from plimsoll.ceph.conf import monitors_of
from plimsoll.ceph.file_systems import EXIT_PURGING
from plimsoll.lifecycle.actions import Create, deletion, deletions
from plimsoll.lifecycle.children import Child, JobFact
from plimsoll.lifecycle.decision import Fact, Teardown
from plimsoll.lifecycle.observed import age_seconds
from plimsoll.lifecycle.obstacles import is_own_plan
from plimsoll.lifecycle.render import teardown as render
from plimsoll.lifecycle.rook.cluster import inactive_groups
from plimsoll.lifecycle.storage.ceph.resources import CephResource, hidden_fact, removal_step
from plimsoll.plan.ceph import ceph_target

_MAX_CHARACTERS = 500

_LONG_SECONDS = 120.0
"""A teardown Job takes a few seconds, and half a minute longer if a client of an image died."""


class Leftovers(CephResource):
    """What conductor and clients create in the pool themselves. It is removed first, while the key still exists."""

    delay: ClassVar[str] = "check that Ceph responds"
    """What may delay the Job for long."""

    def ready(self) -> Fact:
        """Return that nothing has to be created."""
        return hidden_fact(holds=True)

    def remove(self) -> Teardown | None:
        """Return the progress of the removal; None if nothing is left in Ceph.

        Without a copy of the key, no pod of the run has ever reached Ceph.
        """
        there = self.there
        if there.is_empty:
            return None
        if there.kinds_problem:
            message = f"cannot read the run's Rook objects: {there.kinds_problem}"
            return removal_step(message, reason=Reason.ROOK_NOT_FOUND)
        if there.keyring is None:
            return None
        if there.record is None or there.recorded is None:
            return self._restore_record()
        return self._in_ceph(there.recorded)

    def _restore_record(self) -> Teardown:
        """Return the creation of a record that was deleted, or cannot be read."""
        run, there = self.view.run, self.there
        if there.record is not None:
            message = f"cannot read the teardown record {_place(there.record)}; use the operator version that wrote it"
            can_be_written = self.view.plan is not None and is_own_plan(run, self.view.seen)
            obsolete = deletions([there.record] if can_be_written else [])
            return removal_step(message, *obsolete, reason=Reason.TEARDOWN_FAILING)
        record = self._record()
        if record is None:
            message = "the teardown record was deleted, and this version cannot read the specification; use a later one"
            return removal_step(message, reason=Reason.TEARDOWN_FAILING)
        monitors = record.ceph.monitors or monitors_of(there.monitors)
        creation = Create(obj=render.record_config_map(run, record, monitors, self.view.settings))
        return removal_step("the teardown record was deleted and is being recreated", creation)

    def _record(self) -> render.TeardownRecord | None:
        """Return what has to be undone, from the operator's own plan or from the specification; None if unknown."""
        run, plan = self.view.run, self.view.plan
        if plan is not None and is_own_plan(run, self.view.seen):
            return render.record_of(plan)
        if run.document is None:
            return None
        document = run.document
        metadata = document.metadata.model_copy(update={"uid": run.uid})
        target = ceph_target(document.model_copy(update={"metadata": metadata}))
        if target is None:
            return None
        return render.TeardownRecord(
            run=run.identity,
            runner_image=self.view.settings.runner_image,
            clients=document.spec.clients.count,
            ceph=target,
        )

    def _in_ceph(self, record: render.TeardownRecord) -> Teardown | None:
        """Return the progress of the teardown Job, which is replaced if it failed; None if it is complete."""
        job = self.there.jobs[0] if self.there.jobs else None
        if job is None:
            # The policy first: without it a pod could reach any address.
            manifest = render.job if self.there.network_policy else render.network_policy
            creation = Create(obj=manifest(self.view.run, record, self.view.settings))
            return removal_step("about to remove what the run left in Ceph", creation)
        if job.complete and not job.child.deleting:
            return None
        again = (deletion(job.child, foreground=True),) if job.failure and not job.child.deleting else ()
        return replace(self._progress(job), actions=again)

    def _progress(self, job: JobFact) -> Teardown:
        there = self.there
        # A pod can have succeeded shortly before its Job is complete.
        trying = sorted((pod for pod in there.pods if pod.phase != "Succeeded"), key=lambda pod: pod.created)
        last = next((pod for pod in reversed(trying) if pod.problem or pod.exit_message), None)
        if last is not None and not last.problem and last.exit_code == EXIT_PURGING:
            return self._waiting(job, last.exit_message.partition(": ")[2][:_MAX_CHARACTERS])
        problem = (last and (last.problem or last.exit_message)) or job.failure or there.warnings.get(job.child.uid)
        return self._failing(job, problem) if problem else self._waiting(job)

    def _failing(self, job: JobFact, problem: str) -> Teardown:
        message = (
            f"Job {_place(job.child)} failed to remove what the run left in Ceph, and retries: "
            f"{problem[:_MAX_CHARACTERS]}; if the monitors have moved, delete ConfigMap "
            f"{self.view.settings.namespace}/{job.child.name}, which the operator recreates; if the Ceph cluster is "
            "gone for good, delete the Secret of that name"
        )
        if inactive := inactive_groups(self.there.cluster_fact):
            message = f"{inactive}, so {message}"
        return removal_step(message, reason=Reason.TEARDOWN_FAILING)

    def _waiting(self, job: JobFact, purge: str = "") -> Teardown:
        """Return that the Job is at work; `purge`: what was left to be purged when one of its pods last said so."""
        doing = "is removing what the run left in Ceph"
        waiting = "has removed what the run left in Ceph, and waits until Ceph has purged the deleted volumes"
        message = f"Job {_place(job.child)} {waiting if purge else doing}"
        if inactive := inactive_groups(self.there.cluster_fact):
            message = f"{message}, and waits because {inactive}; it continues when they are active"
            return removal_step(message, reason=Reason.PLACEMENT_GROUPS_INACTIVE)
        if purge:
            return removal_step(f"{message} (since {format_time(job.created)}): {purge}")
        if age_seconds(job.created, self.view.now) > _LONG_SECONDS:
            log = f"kubectl --namespace {job.child.namespace} logs job/{job.child.name}"
            message = f"{message} since {format_time(job.created)}; {self.delay}, and see `{log}`"
        return removal_step(message)


def _place(child: Child) -> str:
    return f"{child.namespace}/{child.name}"
