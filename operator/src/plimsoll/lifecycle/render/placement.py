"""On which nodes the pods of clients and servers run, and how they are spread over them."""

from plimsoll.api.run import Clients
from plimsoll.api.servers import Servers
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import Json
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import CephTarget, Plan

_HOST = "kubernetes.io/hostname"
_OSD = {"app": "rook-ceph-osd"}
"""Label of the pods of OSDs. Source: Rook, pkg/operator/ceph/cluster/osd."""


def of_member(run: Run, plan: Plan, clients: Clients, number: int) -> Json:
    """Return the parts of a pod's specification that choose its node."""
    if plan.servers is not None and plan.is_server(number):
        return _of_server(run, plan.servers, plan.ceph)
    selector = _clients(run, plan)
    return {
        "nodeSelector": dict(clients.node_selector),
        "topologySpreadConstraints": [_spread(selector, is_required=clients.spread == "Required")],
    }


def _of_server(run: Run, servers: Servers, ceph: CephTarget | None) -> Json:
    """Return the placement of a server.

    A required spread counts all nodes that the node selector matches. Nodes that the affinity to other pods excludes
    would always have the fewest servers, so that no node could ever have a second one.
    """
    is_selected = servers.placement == "Selected"
    placed: Json = {
        "nodeSelector": dict(servers.node_selector),
        "topologySpreadConstraints": [_spread(_servers(run), is_required=is_selected)],
    }
    if is_selected:
        return placed
    term = _beside_osds(ceph) if servers.placement == "StorageNodes" else {"labelSelector": _not_servers(run)}
    required = [{**term, "topologyKey": _HOST}]
    return {**placed, "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _beside_osds(ceph: CephTarget | None) -> Json:
    # The specification is refused without a Rook cluster.
    namespaces = [ceph.rook.namespace] if ceph is not None and ceph.rook is not None else []
    return {"labelSelector": {"matchLabels": dict(_OSD)}, "namespaces": namespaces}


def _spread(selector: Json, *, is_required: bool) -> Json:
    """Return the constraint that allows at most one more of the selected pods on a node than on any other."""
    return {
        "maxSkew": 1,
        "topologyKey": _HOST,
        "whenUnsatisfiable": "DoNotSchedule" if is_required else "ScheduleAnyway",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": selector,
    }


def _clients(run: Run, plan: Plan) -> Json:
    """Return the selector of the clients' pods, without servers."""
    return _not_servers(run) if plan.servers else {"matchLabels": _members(run)}


def _not_servers(run: Run) -> Json:
    other = {"key": naming.LABEL_ROLE, "operator": "DoesNotExist"}
    return {"matchLabels": _members(run), "matchExpressions": [other]}


def _servers(run: Run) -> Json:
    return {"matchLabels": {**_members(run), naming.LABEL_ROLE: naming.SERVER}}


def _members(run: Run) -> dict[str, str]:
    return {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: naming.CLIENT}
