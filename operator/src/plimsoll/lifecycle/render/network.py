"""NetworkPolicies: what the pods of a run may reach; and their access to the helpers."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_network

from plimsoll.api.storage import NamespacedName
from plimsoll.ceph.document import is_ip_address, monitor_keys, port_of_its_own
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import ceph
from plimsoll.lifecycle.render.common import READABLE, Access, Json, manifest, metadata
from plimsoll.lifecycle.run import NetworkPolicies, Run, Settings
from plimsoll.plan.document import Plan
from plimsoll.protocol.helpers import BURNER_AUDIENCE, CACHES_AUDIENCE, PORT, helper_url
from plimsoll.tools.cast import ACTOR_CLIENT
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

BURNER = "kube-burner"  # label `app.kubernetes.io/component` of the helper, which the chart creates
CACHES = "caches"  # the same label of the helpers that drop caches
_FILE = "token"
_TOKEN_SECONDS = 3600
_BURNER_MOUNT = "/etc/plimsoll/burner"
_CACHES_MOUNT = "/etc/plimsoll/caches"

_MONITOR_PORTS: tuple[Json, ...] = ({"port": 3300, "protocol": "TCP"}, {"port": 6789, "protocol": "TCP"})
_DAEMON_PORTS: Json = {"port": 6800, "endPort": 7568, "protocol": "TCP"}
"""Ports of monitors, and of all other daemons. Source: Ceph, network configuration reference."""


def policies(run: Run, plan: Plan, settings: Settings) -> tuple[Json, ...]:
    """Return the policies of clients and conductor. Its egress is open: the API server has no label or fixed port."""
    allowed = settings.network_policies
    if not allowed.enabled:
        return ()
    rendezvous = {"ports": [{"port": settings.port, "protocol": "TCP"}]}
    metrics = {"ports": [{"port": settings.metrics_port, "protocol": "TCP"}]}
    scraped = [{"from": [peer(run, naming.CLIENT)], **rendezvous}]
    if allowed.conductor_metrics_from:
        scraped.append({"from": [*allowed.conductor_metrics_from], **metrics})
    # All traffic: no policy can name ICMP, and some network plugins ignore the end of a range of ports.
    have_peers = any(TOOLS[point.tool].target is TargetKind.PEER for point in plan.points)
    peers = [peer(run, naming.CLIENT)] if have_peers else []
    egress = [
        dns(allowed),
        {"to": [peer(run, naming.CONDUCTOR)], **rendezvous},
        *(to_ceph(plan.ceph.monitors, allowed) if plan.ceph is not None and ceph.clients_use_ceph(plan) else []),
        *([_egress(plan.cache_helper, CACHES)] if plan.cache_helper is not None else []),
        *([_egress(plan.control_plane.helper, BURNER)] if plan.control_plane is not None else []),
        *([{"to": peers}] if peers else []),
    ]
    ingress = [{"from": peers}] if peers else []
    return (
        _policy(run, naming.CLIENT, ingress=ingress, egress=egress),
        _policy(run, naming.CONDUCTOR, ingress=scraped, egress=[{}]),
    )


def dns(allowed: NetworkPolicies) -> Json:
    protocols = ("UDP", "TCP")
    return {"ports": [{"port": port, "protocol": protocol} for port in allowed.dns_ports for protocol in protocols]}


def to_ceph(monitors: Iterable[str], allowed: NetworkPolicies) -> list[Json]:
    """Return the egress rules for Ceph's daemons: Ceph's ports at any address, or all in the administrator's networks.

    Other ports, which only the run's author names, are open to the monitors that have them (`unreachable_monitor`).
    """
    others = sorted(place for key in monitor_keys(monitors) if (place := port_of_its_own(key)))
    networks = [_block(network) for network in allowed.ceph_networks]
    return [
        {"ports": [*_MONITOR_PORTS, *([] if networks else [_DAEMON_PORTS])]},
        *([{"to": networks, "ports": [{"protocol": "TCP"}]}] if networks else []),
        *(
            {"to": [_block(str(ip_network(host)))], "ports": [{"port": port, "protocol": "TCP"}]}
            for host, port in others
            if is_ip_address(host)
        ),
    ]


def _block(network: str) -> Json:
    return {"ipBlock": {"cidr": network}}


def unreachable_monitor(monitors: Iterable[str]) -> str:
    """Return a monitor that no policy can open, because it has a name and a port of its own; empty if there is none."""
    places = ((monitor, port_of_its_own(key)) for monitor in monitors for key in monitor_keys([monitor]))
    return next((monitor for monitor, place in places if place and not is_ip_address(place[0])), "")


def policy(metadata: Json, selected: Json, *, ingress: list[Json], egress: list[Json]) -> Json:
    spec = {**selected, "policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": egress}
    return manifest("NetworkPolicy", metadata, spec=spec)


def peer(run: Run, component: str) -> Json:
    return {"podSelector": {"matchLabels": {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: component}}}


def _policy(run: Run, component: str, *, ingress: list[Json], egress: list[Json]) -> Json:
    name = naming.network_policy(run.name, component)
    return policy(metadata(run, name, component=component), peer(run, component), ingress=ingress, egress=egress)


def burner_access(run: Run, plan: Plan, client: int) -> Access:
    if plan.control_plane is None or client != ACTOR_CLIENT:
        return Access()
    helper = plan.control_plane.helper
    environment = {
        "PLIMSOLL_BURN_HELPER": helper_url("https", helper.name, helper.namespace),
        "PLIMSOLL_BURN_CERTIFICATE": plan.control_plane.certificate,
        "PLIMSOLL_BURN_TOKEN": f"{_BURNER_MOUNT}/{_FILE}",
        "PLIMSOLL_BURN_STORAGE_CLASS": plan.control_plane.storage_class,
        "PLIMSOLL_BURN_RUN_UID": run.uid,
    }
    return _access("burner-token", BURNER_AUDIENCE, _BURNER_MOUNT, environment)


def caches_helper(plan: Plan) -> dict[str, str]:
    helper = plan.cache_helper
    return {} if helper is None else {"PLIMSOLL_CACHES_HELPER": helper_url("http", helper.name, helper.namespace)}


def caches_access(plan: Plan) -> Access:
    if plan.cache_helper is None:
        return Access()
    environment = {"PLIMSOLL_CACHES_TOKEN": f"{_CACHES_MOUNT}/{_FILE}"}
    return _access("caches-token", CACHES_AUDIENCE, _CACHES_MOUNT, environment)


def _access(name: str, audience: str, mount: str, environment: Mapping[str, str]) -> Access:
    source = {"audience": audience, "expirationSeconds": _TOKEN_SECONDS, "path": _FILE}
    projected = {"defaultMode": READABLE, "sources": [{"serviceAccountToken": source}]}
    mounts = ({"name": name, "mountPath": mount, "readOnly": True},)
    return Access(({"name": name, "projected": projected},), mounts, environment)


def _egress(helper: NamespacedName, component: str) -> Json:
    peer = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": helper.namespace}},
        "podSelector": {"matchLabels": {naming.LABEL_COMPONENT: component}},
    }
    return {"to": [peer], "ports": [{"port": PORT, "protocol": "TCP"}]}
