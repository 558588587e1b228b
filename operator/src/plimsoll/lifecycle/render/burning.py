"""The parts of a run's pods for kube-burner: its first client's token for the helper, and the way to it."""

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import READABLE, Json
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan
from plimsoll.protocol.burning import AUDIENCE, PORT, helper_url
from plimsoll.tools.cast import ACTOR_CLIENT

_VOLUME = "burner-token"
_MOUNT = "/etc/plimsoll/burner"
_FILE = "token"
_TOKEN_SECONDS = 3600

COMPONENT = "kube-burner"
"""Label `app.kubernetes.io/component` of the helper, which the chart creates."""

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def volumes(plan: Plan, client: int) -> list[Json]:
    """Return the volume with a token that only the helper accepts; none for the other clients."""
    if plan.control_plane is None or client != ACTOR_CLIENT:
        return []
    source = {"audience": AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": _FILE}
    projected = {"defaultMode": READABLE, "sources": [{"serviceAccountToken": source}]}
    return [{"name": _VOLUME, "projected": projected}]


def mounts(plan: Plan, client: int) -> list[Json]:
    """Return the mount of that volume."""
    return [{"name": volume["name"], "mountPath": _MOUNT, "readOnly": True} for volume in volumes(plan, client)]


def environment(run: Run, plan: Plan, client: int) -> dict[str, str]:
    """Return the options of `plimsoll burn`."""
    if plan.control_plane is None or client != ACTOR_CLIENT:
        return {}
    helper = plan.control_plane.helper
    return {
        "PLIMSOLL_BURN_HELPER": helper_url(helper.name, helper.namespace),
        "PLIMSOLL_BURN_TOKEN": f"{_MOUNT}/{_FILE}",
        "PLIMSOLL_BURN_STORAGE_CLASS": plan.control_plane.storage_class,
        "PLIMSOLL_BURN_RUN_UID": run.uid,
    }


def egress(plan: Plan) -> list[Json]:
    """Return the egress rule for the helper."""
    if plan.control_plane is None:
        return []
    helper = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: plan.control_plane.helper.namespace}},
        "podSelector": {"matchLabels": {naming.LABEL_COMPONENT: COMPONENT}},
    }
    return [{"to": [helper], "ports": [{"port": PORT, "protocol": "TCP"}]}]
