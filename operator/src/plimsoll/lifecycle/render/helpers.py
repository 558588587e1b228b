"""The way of a run's pods to the helpers, with a token that only one helper accepts.

The first client needs the helper with kube-burner, the conductor those that drop the caches of nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.api.storage import NamespacedName
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import READABLE, Json
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan
from plimsoll.protocol.assignment import CacheDropping
from plimsoll.protocol.helpers import BURNER_AUDIENCE, CACHES_AUDIENCE, PORT, burner_url, caches_url
from plimsoll.tools.cast import ACTOR_CLIENT

BURNER = "kube-burner"
"""Label `app.kubernetes.io/component` of the helper, which the chart creates."""

CACHES = "caches"
"""The same label of the helpers that drop caches."""

_FILE = "token"
_TOKEN_SECONDS = 3600
_BURNER_MOUNT = "/etc/plimsoll/burner"
_CACHES_MOUNT = "/etc/plimsoll/caches"


@dataclass(frozen=True, slots=True)
class HelperAccess:
    """What a pod needs to use a helper; empty if it uses none."""

    volumes: tuple[Json, ...] = ()
    mounts: tuple[Json, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def burner_access(run: Run, plan: Plan, client: int) -> HelperAccess:
    """Return the access to the helper with kube-burner, and the options of `plimsoll burn`."""
    if plan.control_plane is None or client != ACTOR_CLIENT:
        return HelperAccess()
    helper = plan.control_plane.helper
    environment = {
        "PLIMSOLL_BURN_HELPER": burner_url(helper.name, helper.namespace),
        "PLIMSOLL_BURN_TOKEN": f"{_BURNER_MOUNT}/{_FILE}",
        "PLIMSOLL_BURN_STORAGE_CLASS": plan.control_plane.storage_class,
        "PLIMSOLL_BURN_RUN_UID": run.uid,
    }
    return _access("burner-token", BURNER_AUDIENCE, _BURNER_MOUNT, environment)


def caches_access(plan: Plan) -> HelperAccess:
    """Return the conductor's access to the helpers that drop caches."""
    if plan.cache_helper is None:
        return HelperAccess()
    environment = {"PLIMSOLL_CACHES_TOKEN": f"{_CACHES_MOUNT}/{_FILE}"}
    return _access("caches-token", CACHES_AUDIENCE, _CACHES_MOUNT, environment)


def egress(plan: Plan) -> list[Json]:
    """Return the egress rules for the helpers that a plan uses."""
    caches = [_egress(plan.cache_helper, CACHES)] if plan.cache_helper is not None else []
    return [*caches, *([_egress(plan.control_plane.helper, BURNER)] if plan.control_plane is not None else [])]


def dropping(plan: Plan) -> CacheDropping | None:
    """Return how agents drop the caches of their nodes; None if the plan has no helper."""
    service = plan.cache_helper
    return None if service is None else CacheDropping(helper=caches_url(service.name, service.namespace))


def _access(name: str, audience: str, mount: str, environment: Mapping[str, str]) -> HelperAccess:
    source = {"audience": audience, "expirationSeconds": _TOKEN_SECONDS, "path": _FILE}
    projected = {"defaultMode": READABLE, "sources": [{"serviceAccountToken": source}]}
    mounts = ({"name": name, "mountPath": mount, "readOnly": True},)
    return HelperAccess(({"name": name, "projected": projected},), mounts, environment)


def _egress(helper: NamespacedName, component: str) -> Json:
    peer = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": helper.namespace}},
        "podSelector": {"matchLabels": {naming.LABEL_COMPONENT: component}},
    }
    return {"to": [peer], "ports": [{"port": PORT, "protocol": "TCP"}]}
