"""The parts of a run's pods for kube-burner: its first client's token for the helper, and the way to it."""

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import READABLE, Json
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan
from plimsoll.protocol.assignment import CacheDropping
from plimsoll.protocol.helpers import BURNER_AUDIENCE, CACHES_AUDIENCE, PORT, burner_url, caches_url
from plimsoll.tools.cast import ACTOR_CLIENT

_BURNER_VOLUME = "burner-token"
_BURNER_MOUNT = "/etc/plimsoll/burner"
_FILE = "token"
_TOKEN_SECONDS = 3600

BURNER = "kube-burner"
"""Label `app.kubernetes.io/component` of the helper, which the chart creates."""

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def burner_volumes(plan: Plan, client: int) -> list[Json]:
    """Return the volume with a token that only the helper accepts; none for the other clients."""
    if plan.control_plane is None or client != ACTOR_CLIENT:
        return []
    source = {"audience": BURNER_AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": _FILE}
    projected = {"defaultMode": READABLE, "sources": [{"serviceAccountToken": source}]}
    return [{"name": _BURNER_VOLUME, "projected": projected}]


def burner_mounts(plan: Plan, client: int) -> list[Json]:
    """Return the mount of that volume."""
    return [
        {"name": volume["name"], "mountPath": _BURNER_MOUNT, "readOnly": True}
        for volume in burner_volumes(plan, client)
    ]


def burner_environment(run: Run, plan: Plan, client: int) -> dict[str, str]:
    """Return the options of `plimsoll burn`."""
    if plan.control_plane is None or client != ACTOR_CLIENT:
        return {}
    helper = plan.control_plane.helper
    return {
        "PLIMSOLL_BURN_HELPER": burner_url(helper.name, helper.namespace),
        "PLIMSOLL_BURN_TOKEN": f"{_BURNER_MOUNT}/{_FILE}",
        "PLIMSOLL_BURN_STORAGE_CLASS": plan.control_plane.storage_class,
        "PLIMSOLL_BURN_RUN_UID": run.uid,
    }


def burner_egress(plan: Plan) -> list[Json]:
    """Return the egress rule for the helper."""
    if plan.control_plane is None:
        return []
    helper = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: plan.control_plane.helper.namespace}},
        "podSelector": {"matchLabels": {naming.LABEL_COMPONENT: BURNER}},
    }
    return [{"to": [helper], "ports": [{"port": PORT, "protocol": "TCP"}]}]


_VOLUME = "caches-token"
_MOUNT = "/etc/plimsoll/caches"


CACHES = "caches"
"""Label `app.kubernetes.io/component` of the helpers, which the chart creates."""


def dropping(plan: Plan) -> CacheDropping | None:
    """Return how agents drop the caches of their nodes; None if the plan has no helper."""
    service = plan.cache_helper
    return None if service is None else CacheDropping(helper=caches_url(service.name, service.namespace))


def caches_volumes(plan: Plan) -> list[Json]:
    """Return the volume with the conductor's token, which only the helpers accept."""
    if plan.cache_helper is None:
        return []
    source = {"audience": CACHES_AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": _FILE}
    projected = {"defaultMode": READABLE, "sources": [{"serviceAccountToken": source}]}
    return [{"name": _VOLUME, "projected": projected}]


def caches_mounts(plan: Plan) -> list[Json]:
    """Return the mount of that volume."""
    return [] if plan.cache_helper is None else [{"name": _VOLUME, "mountPath": _MOUNT, "readOnly": True}]


def caches_environment(plan: Plan) -> dict[str, str]:
    """Return the variable with the path of that token."""
    return {} if plan.cache_helper is None else {"PLIMSOLL_CACHES_TOKEN": f"{_MOUNT}/{_FILE}"}


def caches_egress(plan: Plan) -> list[Json]:
    """Return the egress rule for the helpers."""
    if plan.cache_helper is None:
        return []
    helpers = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: plan.cache_helper.namespace}},
        "podSelector": {"matchLabels": {naming.LABEL_COMPONENT: CACHES}},
    }
    return [{"to": [helpers], "ports": [{"port": PORT, "protocol": "TCP"}]}]
