"""How a run's pods reach Ceph: keys and the monitors' addresses."""

from collections.abc import Iterable, Iterator

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.actions import Action, CheckSecret, CopyKeyring, Create, deletions
from plimsoll.lifecycle.decision import Fact, Teardown
from plimsoll.lifecycle.render import ceph as render
from plimsoll.lifecycle.render.common import Json
from plimsoll.lifecycle.render.teardown import keyring_secret
from plimsoll.lifecycle.storage.ceph.resources import CephResource, hidden_fact, removal_step


class Access(CephResource):
    """A copy of the key for the teardown Job, and `ceph.conf`. Pods mount the keyring Secret that the run names.

    The copy is created before any pod of the run can reach Ceph: without it the run has nothing in Ceph.
    """

    def desired(self) -> Iterator[Action]:
        """Yield the copies of keys, and then the `ceph.conf` that is used with them."""
        run = self.view.run
        if self.there.keyring is None:
            yield self.copy(keyring_secret(run, self.view.settings), self.target.conductor_user)
        if not self.view.in_use:
            yield from self.pod_keyrings()
            yield from self._administrator_key_check()
        if not self._is_configured():
            yield Create(obj=render.config_map(run, self.monitors))

    def ready(self) -> Fact:
        """Return whether the run's pods have what they need."""
        return hidden_fact(holds=self._is_configured() and self.there.keyring is not None)

    def remove(self) -> Teardown | None:
        """Return the deletion of the teardown Job's copy. The rest is garbage-collected with the run."""
        if self.there.keyring is None:
            return None
        # Before its CephX user: otherwise a deleted Job would be recreated and could only fail. From here on, the
        # absence of the copy means that the run has nothing in Ceph.
        return removal_step("deleting the copied key", *deletions([self.there.keyring]))

    def pod_keyrings(self) -> Iterable[Action]:
        """Return the copies of keys for conductor and clients: none if they mount the Secret that the run names."""
        return ()

    def copy(self, obj: Json, user: str) -> CopyKeyring:
        """Return the copy of a user's key: from the keyring that the run names.

        Raises:
            ValueError: the run names none.

        """
        source = self.target.keyring
        if source is None:
            raise ValueError(f"run {self.view.run.name} names no keyring")
        return CopyKeyring(
            obj=obj,
            user=user,
            namespace=self.view.run.namespace,
            secret=source.name,
            field=source.key,
            is_keyring=True,
        )

    def _is_configured(self) -> bool:
        return naming.ceph_config_map(self.view.run.name) in self.view.seen.names("ConfigMap")

    def _administrator_key_check(self) -> Iterator[CheckSecret]:
        """Yield the check that the run may use the keyring that it names for the OSDs."""
        keyring = render.administrator_keyring(self.plan)
        if keyring is not None:
            yield CheckSecret(namespace=self.view.run.namespace, secret=keyring.name)
