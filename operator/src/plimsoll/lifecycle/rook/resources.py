"""A run's resources in a Rook cluster: pools, CephX users, access and StorageClass. Each needs those before it."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.actions import Action, CopyKeyring, Create, deletion, deletions
from plimsoll.lifecycle.decision import Fact, Teardown
from plimsoll.lifecycle.render import ceph as render_ceph
from plimsoll.lifecycle.render.common import Json
from plimsoll.lifecycle.rook import render
from plimsoll.lifecycle.rook.cluster import inactive_groups
from plimsoll.lifecycle.rook.facts import MAX_CHARACTERS, POOL_KINDS, RookFact, own_objects, readiness_fact
from plimsoll.lifecycle.rook.removal import deletion_blocker, removal_fact
from plimsoll.lifecycle.storage.ceph.access import Access
from plimsoll.lifecycle.storage.ceph.facts import ExternalObjects
from plimsoll.lifecycle.storage.ceph.leftovers import Leftovers
from plimsoll.lifecycle.storage.ceph.resources import CephResource, hidden_fact, removal_step
from plimsoll.lifecycle.wording import are, counted, listed


class Cluster(CephResource):
    """The existing CephCluster."""

    def ready(self) -> Fact:
        """Return whether objects can be created in it, and why not."""
        rook, there = self.target.rook, self.there
        if rook is None:
            return hidden_fact(holds=True)
        name = f"CephCluster {rook.namespace}/{rook.name}"
        if there.kinds_problem or there.cluster is None:
            why = f": {there.kinds_problem}" if there.kinds_problem else ""
            return Fact.false(Reason.ROOK_NOT_FOUND, f"{name} not found{why}")
        if not self.monitors:
            message = f"Rook has not published the monitors of {name} yet (ConfigMap rook-ceph-mon-endpoints)"
            return Fact.false(Reason.CEPH_CLUSTER_NOT_READY, message)
        return hidden_fact(holds=True)


class RookResource(CephResource):
    """Objects that Rook reconciles."""

    def unless_in_use(self, fact: Fact) -> Fact:
        """Return the fact, or that objects in use are ready, whatever a restarted Rook reports about them."""
        if fact.holds or not self.view.in_use or not self._is_complete():
            return fact
        return Fact.true(Reason.READY, f"in use; Rook is reconciling it again: {fact.message}")

    def _is_complete(self) -> bool:
        facts = (*self.there.pools, *self.there.users)
        return len(facts) == len([*own_objects(self.target)]) and not any(fact.child.deleting for fact in facts)


class Pools(RookResource):
    """The run's own pools, or its file system. One that a user deletes under load is not created again."""

    def desired(self) -> Iterable[Create]:
        """Return the creation of missing pools."""
        wanted: Iterable[Json] = () if self.view.in_use else render.pools(self.view.run, self.target)
        return _absent(wanted, self.there.pools)

    def ready(self) -> Fact:
        """Return whether they are ready."""
        return self.unless_in_use(readiness_fact(self.target, self.there.pools, kinds=POOL_KINDS))

    def remove(self) -> Teardown | None:
        """Return the progress of deleting pools: first the one with the images' headers, then `<its name>-data`."""
        if not self.there.pools:
            return None
        pool, cluster = min(self.there.pools, key=lambda fact: fact.child.name), self.there.cluster_fact
        answered = any(job.complete for job in self.there.jobs)
        run, now = self.view.run, self.view.now
        blocker = deletion_blocker(pool, cluster, groups_answered=answered, ended=run.end_time, now=now)
        if blocker is not None and not pool.child.deleting:
            return Teardown(actions=(), fact=blocker)
        return Teardown(actions=deletions([pool.child]), fact=removal_fact([pool], now, inactive_groups(cluster)))


class Users(RookResource):
    """The CephX users of conductor and agents."""

    def desired(self) -> Iterable[Create]:
        """Return the creation of missing users, as long as Secrets are left for their keys."""
        secrets = render.key_secrets(self.target, self.there.all_users)
        if self.view.in_use or secrets is None:
            return ()
        return _absent(render.users(self.view.run, self.target, secrets), self.there.users)

    def ready(self) -> Fact:
        """Return whether pools and users are ready."""
        fact = self.unless_in_use(readiness_fact(self.target, (*self.there.pools, *self.there.users)))
        if fact.reason is Reason.USER_NOT_READY and render.key_secrets(self.target, self.there.all_users) is None:
            return self._no_secret_left()
        return fact

    def remove(self) -> Teardown | None:
        """Return the progress of deleting the users."""
        users = self.there.users
        if not users:
            return None
        return Teardown(actions=deletions(user.child for user in users), fact=removal_fact(users, self.view.now))

    def _no_secret_left(self) -> Fact:
        names = f"{render.KEY_SECRETS[0]} to {render.KEY_SECRETS[-1]}"
        namespace = self.target.rook.namespace if self.target.rook else ""
        message = f"CephClients use all Secrets {names} in namespace {namespace}; delete runs that keep their storage"
        return Fact.false(Reason.KEY_SECRETS_TAKEN, message)


class RookAccess(Access):
    """Access as without Rook, but with keys from Rook's namespace, and with the StorageClass of the run's PVCs."""

    def desired(self) -> Iterator[Action]:
        """Yield keys and `ceph.conf`, and the StorageClass."""
        yield from super().desired()
        if self._needs_storage_class() and self.there.storage_class is None and self.there.rook_operator:
            yield Create(obj=render.storage_class(self.view.run, self.plan, self.there.rook_operator))

    def ready(self) -> Fact:
        """Return whether pods have what they need, and PVCs their StorageClass."""
        has_class = self.there.storage_class is not None or not self._needs_storage_class()
        return hidden_fact(holds=bool(super().ready().holds) and has_class)

    def remove(self) -> Teardown | None:
        """Return the progress of deleting the key, PersistentVolumes and their StorageClass."""
        if step := super().remove():
            return step
        if volumes := _volumes_fact(self.there):
            return Teardown(actions=(), fact=volumes)
        if self.there.storage_class is None:
            return None
        return removal_step("deleting the StorageClass", *deletions([self.there.storage_class]))

    def pod_keyrings(self) -> Iterator[Action]:
        """Yield the copies of the keys that the run's pods need."""
        run = self.view.run
        yield self.copy(render_ceph.keyring_secret(run, naming.CONDUCTOR), self.target.conductor_user)
        if render_ceph.clients_use_ceph(self.plan):
            yield self.copy(render_ceph.keyring_secret(run, naming.CLIENT), self.target.agent_user)

    def copy(self, obj: Json, user: str) -> CopyKeyring:
        """Return the copy of a user's key from Rook's namespace."""
        fact = next(fact for fact in self.there.users if fact.child.name == user)
        # Rook also stores the key in a field named after the user, which an earlier user of this Secret does not have.
        return CopyKeyring(obj=obj, user=user, namespace=fact.child.namespace, secret=fact.secret, field=user)

    def _needs_storage_class(self) -> bool:
        return render.needs_storage_class(self.plan)


class FileSystemLeftovers(Leftovers):
    """Those of a run with its own file system: removed after its volumes, which Ceph purges when they are deleted."""

    delay: ClassVar[str] = "check whether Ceph is still purging deleted volumes, and that it responds"

    def remove(self) -> Teardown | None:
        """Return the progress of deleting the volumes, and of what they leave.

        A Job that did not wait for the purge, or that did before the last volume was deleted, is repeated.
        """
        there, volumes = self.there, _volumes_fact(self.there)
        # Without the copied key, another one could only fail.
        is_outdated = there.keyring is not None and (volumes is not None or not there.purge_awaited)
        jobs = [job.child for job in there.jobs if not job.child.deleting] if is_outdated else []
        actions = tuple(deletion(job, foreground=True) for job in jobs)
        if volumes is not None:
            return Teardown(actions=actions, fact=volumes)
        if actions:
            return removal_step("deleting the teardown Job of an earlier version, which does not wait", *actions)
        return super().remove()


def _volumes_fact(there: ExternalObjects) -> Fact | None:
    """Return which PersistentVolumes are left, and which PVCs of others they are bound to; None if none is left."""
    if volumes := there.claimed_by_others:
        message = (
            f"{counted(len(volumes), 'PersistentVolume')} of the run's StorageClass {are(len(volumes))} bound to "
            f"PVCs of others: {listed(volumes)}; what these need in Ceph stays until the PVCs are deleted, and the "
            "next run may start"
        )
        return Fact.false(Reason.CLAIMED_BY_OTHERS, message)
    if volumes := there.volumes:
        left = counted(len(volumes), "PersistentVolume")
        message = f"waiting for the provisioner to delete {left}: {listed(volumes)}"
        why = f" ({warning[:MAX_CHARACTERS]})" if (warning := there.volume_warning) else ""
        return Fact.false(Reason.IN_PROGRESS, f"{message}{why}")
    return None


def _absent(wanted: Iterable[Json], there: Iterable[RookFact]) -> Iterator[Create]:
    names = {fact.child.name for fact in there}
    for obj in wanted:
        if obj["metadata"]["name"] not in names:
            yield Create(obj=obj)
