"""NetworkPolicies: what the pods of a run may reach.

Agents may reach their conductor, and Ceph, helpers and each other as needed; the conductor may reach anything.
"""

from collections.abc import Iterable, Iterator

from plimsoll.ceph.document import monitor_keys
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import ceph, helpers
from plimsoll.lifecycle.render.common import Json, manifest, metadata
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import Plan
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

DNS: Json = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}

_MONITOR_PORTS = (3300, 6789)
_CEPH_PORTS: tuple[Json, ...] = (
    *({"port": port, "protocol": "TCP"} for port in _MONITOR_PORTS),
    {"port": 6800, "endPort": 7568, "protocol": "TCP"},
)
"""Ports of monitors, then of all other daemons. Source: Ceph, network configuration reference."""

_MAX_PORT = 65535


def policies(run: Run, plan: Plan, settings: Settings) -> tuple[Json, ...]:
    """Return the NetworkPolicies of a run: of its clients, and of its conductor.

    The conductor's egress is open because the API server has no label and no fixed port. Only an administrator knows
    where Prometheus runs; without that setting no pod may scrape the conductor.
    """
    rendezvous = {"ports": [{"port": settings.port, "protocol": "TCP"}]}
    metrics = {"ports": [{"port": settings.metrics_port, "protocol": "TCP"}]}
    scraped = [{"from": [peer(run, naming.CLIENT)], **rendezvous}]
    if settings.metrics_from:
        scraped.append({"from": [dict(scraper) for scraper in settings.metrics_from], **metrics})
    peer_ports = [*_peer_ports(plan)]
    egress = [
        DNS,
        {"to": [peer(run, naming.CONDUCTOR)], **rendezvous},
        *([to_ceph(plan.ceph.monitors)] if plan.ceph is not None and ceph.clients_use_ceph(plan) else []),
        *helpers.egress(plan),
        *({"to": [peer(run, naming.CLIENT)], **ports} for ports in peer_ports),
    ]
    ingress = [{"from": [peer(run, naming.CLIENT)], **ports} for ports in peer_ports]
    return (
        _policy(run, naming.CLIENT, ingress=ingress, egress=egress),
        _policy(run, naming.CONDUCTOR, ingress=scraped, egress=[{}]),
    )


def to_ceph(monitors: Iterable[str]) -> Json:
    """Return the egress rule for Ceph's daemons: by port only, because the OSDs' addresses are not known."""
    others = {int(port) for key in monitor_keys(monitors) if (port := key.rpartition("]:")[2]).isdecimal()}
    further = sorted(port for port in others if 0 < port <= _MAX_PORT)
    return {"ports": [*_CEPH_PORTS, *({"port": port, "protocol": "TCP"} for port in further)]}


def policy(metadata: Json, selected: Json, *, ingress: list[Json], egress: list[Json]) -> Json:
    """Return a policy for the pods of a peer."""
    spec = {**selected, "policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": egress}
    return manifest("NetworkPolicy", metadata, spec=spec)


def peer(run: Run, component: str) -> Json:
    """Return the selector of a component's pods."""
    return {"podSelector": {"matchLabels": {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: component}}}


def _policy(run: Run, component: str, *, ingress: list[Json], egress: list[Json]) -> Json:
    name = naming.child(run.name, f"{component}-network")
    return policy(metadata(run, name, component=component), peer(run, component), ingress=ingress, egress=egress)


def _peer_ports(plan: Plan) -> Iterator[Json]:
    """Yield the ports that clients open to each other, at most once; without ports for all traffic, ICMP included.

    A NetworkPolicy cannot name ICMP.
    """
    tools = [TOOLS[name] for name in {point.tool for point in plan.points}]
    opened = {tool.peer_ports for tool in tools if tool.target is TargetKind.PEER}
    if None in opened:
        yield {}
        return
    for first, end in sorted((ports.start, ports.stop) for ports in opened if ports is not None):
        yield {"ports": [{"port": first, "endPort": end - 1, "protocol": protocol} for protocol in ("TCP", "UDP")]}
