"""The parts of a run's pods for the helpers: a token that only one helper accepts, and the way to it.

The first client needs the helper with kube-burner, the conductor those that drop the caches of nodes.
"""

from plimsoll.api.storage import NamespacedName
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import READABLE, Json
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan
from plimsoll.protocol.assignment import CacheDropping
from plimsoll.protocol.helpers import BURNER_AUDIENCE, CACHES_AUDIENCE, PORT, burner_url, caches_url
from plimsoll.tools.cast import ACTOR_CLIENT

_FILE = "token"
_TOKEN_SECONDS = 3600

BURNER = "kube-burner"
"""Label `app.kubernetes.io/component` of the helper, which the chart creates."""

CACHES = "caches"
"""The same label of the helpers that drop caches."""

_BURNER_MOUNT = "/etc/plimsoll/burner"
_CACHES_MOUNT = "/etc/plimsoll/caches"


def burner_volumes(plan: Plan, client: int) -> list[Json]:
    """Return the volume with the client's token; none for a client that does not need the helper."""
    return [_token_volume("burner-token", BURNER_AUDIENCE)] if _uses_burner(plan, client) else []


def burner_mounts(plan: Plan, client: int) -> list[Json]:
    """Return the mount of that volume."""
    mount = {"name": "burner-token", "mountPath": _BURNER_MOUNT, "readOnly": True}
    return [mount] if _uses_burner(plan, client) else []


def burner_environment(run: Run, plan: Plan, client: int) -> dict[str, str]:
    """Return the options of `plimsoll burn`."""
    if plan.control_plane is None or not _uses_burner(plan, client):
        return {}
    helper = plan.control_plane.helper
    return {
        "PLIMSOLL_BURN_HELPER": burner_url(helper.name, helper.namespace),
        "PLIMSOLL_BURN_TOKEN": f"{_BURNER_MOUNT}/{_FILE}",
        "PLIMSOLL_BURN_STORAGE_CLASS": plan.control_plane.storage_class,
        "PLIMSOLL_BURN_RUN_UID": run.uid,
    }


def egress(plan: Plan) -> list[Json]:
    """Return the egress rules for the helpers that a plan uses."""
    caches = [_egress(plan.cache_helper, CACHES)] if plan.cache_helper is not None else []
    return [*caches, *([_egress(plan.control_plane.helper, BURNER)] if plan.control_plane is not None else [])]


def dropping(plan: Plan) -> CacheDropping | None:
    """Return how agents drop the caches of their nodes; None if the plan has no helper."""
    service = plan.cache_helper
    return None if service is None else CacheDropping(helper=caches_url(service.name, service.namespace))


def caches_volumes(plan: Plan) -> list[Json]:
    """Return the volume with the conductor's token."""
    return [] if plan.cache_helper is None else [_token_volume("caches-token", CACHES_AUDIENCE)]


def caches_mounts(plan: Plan) -> list[Json]:
    """Return the mount of that volume."""
    mount = {"name": "caches-token", "mountPath": _CACHES_MOUNT, "readOnly": True}
    return [] if plan.cache_helper is None else [mount]


def caches_environment(plan: Plan) -> dict[str, str]:
    """Return the variable with the path of that token."""
    return {} if plan.cache_helper is None else {"PLIMSOLL_CACHES_TOKEN": f"{_CACHES_MOUNT}/{_FILE}"}


def _uses_burner(plan: Plan, client: int) -> bool:
    return plan.control_plane is not None and client == ACTOR_CLIENT


def _token_volume(name: str, audience: str) -> Json:
    source = {"audience": audience, "expirationSeconds": _TOKEN_SECONDS, "path": _FILE}
    return {"name": name, "projected": {"defaultMode": READABLE, "sources": [{"serviceAccountToken": source}]}}


def _egress(helper: NamespacedName, component: str) -> Json:
    peer = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": helper.namespace}},
        "podSelector": {"matchLabels": {naming.LABEL_COMPONENT: component}},
    }
    return {"to": [peer], "ports": [{"port": PORT, "protocol": "TCP"}]}
