"""What a run needs of a Ceph cluster before it can measure: what of it is to be made now, and how far it is.

The order is: the teardown record; pools; CephX users; copies of their keys; the StorageClass. Each waits for the one
before it.
"""

from collections.abc import Iterable, Iterator

from plimsoll.ceph.conf import monitors_of
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.actions import Action, CheckSecret, CopyKeyring, Create
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.elsewhere import Elsewhere
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.render import ceph as render_ceph
from plimsoll.lifecycle.render import teardown as render_teardown
from plimsoll.lifecycle.render.common import Json
from plimsoll.lifecycle.rook import render as render_rook
from plimsoll.lifecycle.rook import storage as render_storage
from plimsoll.lifecycle.rook.facts import RookFact, readiness_fact
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import CephTarget, Plan

_STARTING = Fact(holds=False, reason="PoolNotReady", message="the Ceph cluster is being looked at")


def storage_fact(plan: Plan, seen: Observed) -> Fact:
    """Return whether pool and users are there, and if not why. Nothing is said of volumes."""
    target, there = plan.ceph, seen.elsewhere
    if target is None or there is None:
        return _STARTING
    if problem := _cluster_problem(target, there):
        return problem
    if target.rook is None:
        message = f"pool {' and '.join(target.pools)} was there before; the conductor looks whether it can be used"
        return Fact(holds=True, reason="Ready", message=message)
    made = readiness_fact(target, (*there.pools, *there.users))
    if not made.holds and seen.jobs and _is_all_there(target, there):
        return Fact(holds=True, reason="Ready", message=f"in use; Rook is at work again: {made.message}")
    if made.reason == "UserNotReady" and render_rook.key_secrets(target, there.all_users) is None:
        names = f"{render_rook.KEY_SECRETS[0]} to {render_rook.KEY_SECRETS[-1]}"
        message = (
            f"all Secrets {names} of namespace {target.rook.namespace} are taken by CephClients; delete runs whose "
            "storage is kept"
        )
        return Fact(holds=False, reason="KeySecretsTaken", message=message)
    return made


def _is_all_there(target: CephTarget, there: Elsewhere) -> bool:
    """Tell whether everything that was made is there, whatever Rook, which may have been restarted, does with it."""
    expected = len(target.pools) * (target.made is not None) + 2
    facts = (*there.pools, *there.users)
    return len(facts) == expected and not any(fact.child.deleting for fact in facts)


def missing(run: Run, plan: Plan, seen: Observed, settings: Settings) -> Iterator[Action]:
    """Yield what is to be made now; nothing if all of it is there, or is waited for.

    As long as there is load, only what its removal needs is made anew: a pool that somebody deleted under it is gone.
    """
    target, there = plan.ceph, seen.elsewhere
    if target is None or there is None or _cluster_problem(target, there):
        return
    record = render_teardown.record_of(plan)
    if there.record is None and record is not None:
        yield Create(obj=render_teardown.record_config_map(run, record, _monitors(target, there), settings))
        return
    if not seen.jobs:
        yield from _rook_objects(run, target, there)
    if not storage_fact(plan, seen).holds:
        return
    if there.keyring is None:
        yield _copy(run, target, there, render_teardown.keyring_secret(run, settings), target.conductor_user)
    if not seen.jobs:
        yield from _keys(run, plan, target, there)
    if naming.ceph_config_map(run.name) not in seen.names("ConfigMap"):
        yield Create(obj=render_ceph.config_map(run, _monitors(target, there)))
    if render_storage.needs_storage_class(plan) and there.storage_class is None and there.rook_operator:
        yield Create(obj=render_storage.storage_class(run, plan, there.rook_operator))


def is_provided(plan: Plan, seen: Observed) -> bool:
    """Tell whether claims and clients can be made. What is there already stays, whatever Rook says meanwhile."""
    there = seen.elsewhere
    if plan.ceph is None or seen.jobs:
        return True
    if there is None or there.record is None or not storage_fact(plan, seen).holds:
        return False
    configured = naming.ceph_config_map(plan.run.name) in seen.names("ConfigMap")
    return configured and (there.storage_class is not None or not render_storage.needs_storage_class(plan))


def _rook_objects(run: Run, target: CephTarget, there: Elsewhere) -> Iterator[Create]:
    """Yield pools that are not there; when all are ready, users that are not there."""
    wanted = list(render_rook.pools(run, target))
    yield from _absent(wanted, there.pools)
    ready = {fact.child.name for fact in there.pools if fact.ready}
    secrets = render_rook.key_secrets(target, there.all_users)
    if ready >= {pool["metadata"]["name"] for pool in wanted} and secrets is not None:
        yield from _absent(render_rook.users(run, target, secrets), there.users)


def _keys(run: Run, plan: Plan, target: CephTarget, there: Elsewhere) -> Iterator[Action]:
    """Yield what gives pods their keys, and what sees that they may have the one that the user names."""
    if target.rook is not None:
        for component, user in _users(plan, target):
            yield _copy(run, target, there, render_ceph.keyring_secret(run, component), user)
    administrators = render_ceph.osd_bench_keyring(plan)
    if administrators is not None:
        yield CheckSecret(namespace=run.namespace, secret=administrators.name)


def _absent(wanted: Iterable[Json], there: Iterable[RookFact]) -> Iterator[Create]:
    names = {fact.child.name for fact in there}
    for obj in wanted:
        if obj["metadata"]["name"] not in names:
            yield Create(obj=obj)


def _users(plan: Plan, target: CephTarget) -> Iterator[tuple[str, str]]:
    """Yield which pods need whose key."""
    yield naming.CONDUCTOR, target.conductor_user
    if render_ceph.clients_use_ceph(plan):
        yield naming.CLIENT, target.agent_user


def _copy(run: Run, target: CephTarget, there: Elsewhere, obj: Json, user: str) -> CopyKeyring:
    """Return the copying of a user's key out of Rook's namespace, or of the keyring that the run names."""
    if target.keyring is not None:
        source = target.keyring
        return CopyKeyring(
            obj=obj, user=user, namespace=run.namespace, secret=source.name, field=source.key, is_keyring=True
        )
    fact = next(fact for fact in there.users if fact.child.name == user)
    # Rook has the key in a field of the user's name as well: that of whoever had this Secret before has another.
    return CopyKeyring(obj=obj, user=user, namespace=fact.child.namespace, secret=fact.secret, field=user)


def _cluster_problem(target: CephTarget, there: Elsewhere) -> Fact | None:
    """Return why nothing can be made in a cluster now; None if something can."""
    if target.rook is None:
        return None
    name = f"CephCluster {target.rook.namespace}/{target.rook.name}"
    if there.kinds_problem or there.cluster is None:
        why = there.kinds_problem or "it is not there"
        return Fact(holds=False, reason="RookNotFound", message=f"{name} is not found: {why}")
    if not _monitors(target, there):
        message = f"Rook has not said yet where the monitors of {name} are (ConfigMap rook-ceph-mon-endpoints)"
        return Fact(holds=False, reason="CephClusterNotReady", message=message)
    return None


def _monitors(target: CephTarget, there: Elsewhere) -> tuple[str, ...]:
    return target.monitors or monitors_of(there.monitors)
