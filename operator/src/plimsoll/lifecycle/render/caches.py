"""The parts of a run's pods for dropping caches: the conductor's token for the helpers, and the way to them."""

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import READABLE, Json
from plimsoll.plan.document import Plan
from plimsoll.protocol.assignment import CacheDropping
from plimsoll.protocol.caches import AUDIENCE, PORT, helper_url

_VOLUME = "caches-token"
_MOUNT = "/etc/plimsoll/caches"
_FILE = "token"
_TOKEN_SECONDS = 3600

COMPONENT = "caches"
"""Label `app.kubernetes.io/component` of the helpers, which the chart creates."""

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def dropping(plan: Plan) -> CacheDropping | None:
    """Return how agents drop the caches of their nodes; None if the plan has no helper."""
    service = plan.cache_helper
    return None if service is None else CacheDropping(helper=helper_url(service.name, service.namespace))


def volumes(plan: Plan) -> list[Json]:
    """Return the volume with the conductor's token, which only the helpers accept."""
    if plan.cache_helper is None:
        return []
    source = {"audience": AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": _FILE}
    projected = {"defaultMode": READABLE, "sources": [{"serviceAccountToken": source}]}
    return [{"name": _VOLUME, "projected": projected}]


def mounts(plan: Plan) -> list[Json]:
    """Return the mount of that volume."""
    return [] if plan.cache_helper is None else [{"name": _VOLUME, "mountPath": _MOUNT, "readOnly": True}]


def environment(plan: Plan) -> dict[str, str]:
    """Return the variable with the path of that token."""
    return {} if plan.cache_helper is None else {"PLIMSOLL_CACHES_TOKEN": f"{_MOUNT}/{_FILE}"}


def egress(plan: Plan) -> list[Json]:
    """Return the egress rule for the helpers."""
    if plan.cache_helper is None:
        return []
    helpers = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: plan.cache_helper.namespace}},
        "podSelector": {"matchLabels": {naming.LABEL_COMPONENT: COMPONENT}},
    }
    return [{"to": [helpers], "ports": [{"port": PORT, "protocol": "TCP"}]}]
