"""What a client of Ceph reads: where the monitors are, and its key."""

from collections.abc import Iterable

MOUNT = "/etc/plimsoll/ceph"
CONF_FILE = "ceph.conf"
KEYRING_FILE = "keyring"
CONF_PATH = f"{MOUNT}/{CONF_FILE}"

OSD_BENCH_MOUNT = "/etc/plimsoll/osd-bench"
"""Where the administrator's keyring for `osdBench` is, also as a file `keyring`."""


def ceph_conf(monitors: Iterable[str]) -> str:
    """Return `ceph.conf` for these addresses, the same text in whatever order they come.

    librbd's cache is off: `volume.rbdCache` turns it on for a command, and nothing else does.
    """
    return (
        "[global]\n"
        f"mon_host = {','.join(sorted(monitors))}\n"
        f"keyring = {MOUNT}/{KEYRING_FILE}\n"
        "\n"
        "[client]\n"
        "rbd_cache = false\n"
    )


def keyring(user: str, key: str) -> str:
    """Return a keyring file. `user` is without `client.`."""
    return f"[client.{user}]\nkey = {key}\n"


def monitors_of(endpoints: str) -> tuple[str, ...]:
    """Return the addresses in the field `data` of Rook's ConfigMap `rook-ceph-mon-endpoints`, sorted.

    It reads `c=10.0.0.12:6789,a=10.0.0.11:6789`, in an order that changes. Empty if there is none.
    """
    entries = (entry.strip() for entry in endpoints.split(","))
    return tuple(sorted(entry.partition("=")[2] for entry in entries if "=" in entry))
