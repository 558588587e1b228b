"""Who may talk to whom: agents to their conductor and nothing else; the conductor to DNS and the API."""

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import Json, metadata
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings

_DNS = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


def policies(run: Run, settings: Settings) -> tuple[Json, ...]:
    """Return the NetworkPolicies of a run."""
    return (_client_policy(run, settings), _conductor_policy(run, settings))


def _client_policy(run: Run, settings: Settings) -> Json:
    return _policy(
        run,
        naming.CLIENT,
        ingress=[],
        egress=[_DNS, {"to": [_peer(run, naming.CONDUCTOR)], "ports": [{"port": settings.port, "protocol": "TCP"}]}],
    )


def _conductor_policy(run: Run, settings: Settings) -> Json:
    """Return the conductor's policy. The API server has no label and no fixed port to name it by."""
    return _policy(
        run,
        naming.CONDUCTOR,
        ingress=[{"from": [_peer(run, naming.CLIENT)], "ports": [{"port": settings.port, "protocol": "TCP"}]}],
        egress=[{}],
    )


def _policy(run: Run, component: str, *, ingress: list[Json], egress: list[Json]) -> Json:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(run, naming.child(run.name, f"{component}-network"), component=component),
        "spec": {
            "podSelector": _peer(run, component)["podSelector"],
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    }


def _peer(run: Run, component: str) -> Json:
    return {"podSelector": {"matchLabels": {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: component}}}
