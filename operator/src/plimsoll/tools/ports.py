"""The ports on which clients serve each other."""

SERVING_PORTS = range(20_480, 24_576)
"""Below the ports that Linux assigns to connections, and beyond those of Ceph's daemons."""

_CLIENTS = 64
"""Up to this many clients, no two pairs have the same port, so that all can share one address."""


def serving_port(server: int, client: int) -> int:
    """Return the port on which `server` serves `client`.

    At one server, the ports of up to 4096 clients differ.
    """
    return SERVING_PORTS[(server * _CLIENTS + client) % len(SERVING_PORTS)]
