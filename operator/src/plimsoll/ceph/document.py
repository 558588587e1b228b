"""What Plimsoll and Ceph's commands exchange: their JSON output, `ceph.conf`, keyrings and monitors' addresses."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address

from plimsoll.api.json_reader import JsonNode


def parse_answer(text: str) -> JsonNode:
    """Parse what a command of Ceph printed with `--format json`; OutputError if it is not JSON."""
    return JsonNode.parse(text, document="Ceph's answer")


MOUNT = "/etc/plimsoll/ceph"
CONF_FILE = "ceph.conf"
KEYRING_FILE = "keyring"
CONF_PATH = f"{MOUNT}/{CONF_FILE}"
OSD_BENCH_MOUNT = "/etc/plimsoll/osd-bench"  # with the administrator's keyring for `osdBench`, also KEYRING_FILE


def ceph_conf(monitors: Iterable[str]) -> str:
    """Return `ceph.conf` for these addresses; their order does not matter."""
    # Only `volume.rbdCache` turns librbd's cache on, for a command. A client breaks the lock of a dead predecessor
    # without blocklisting it: an image belongs to one client, and the run's users must not be able to blocklist others.
    return (
        f"[global]\nmon_host = {','.join(sorted(monitors))}\nkeyring = {MOUNT}/{KEYRING_FILE}\n\n"
        "[client]\nrbd_cache = false\nrbd_blocklist_on_break_lock = false\n"
    )


def keyring(user: str, key: str) -> str:
    """Return a keyring file. `user` is without `client.`."""
    return f"[client.{user}]\nkey = {key}\n"


AES256K = "aes256k"  # type of keys that Ceph makes by default since 19.2.6 and 20.2.4; earlier clients cannot read them
_KEY_TYPES = {1: "aes", 2: AES256K}
_KEY = re.compile(r"(?<![A-Za-z0-9+/])A[Qg][A-D][A-Za-z0-9+/]{17,57}={0,2}")  # the text of a key, or a part of one
_KEY_LINE = re.compile(r"^\s*key\s*=\s*(\S+)", re.MULTILINE)


def key_type(keyring_text: str, user: str) -> str:
    """Return the type of a user's key in a keyring file: `aes` or `aes256k`; empty for others, or without a key."""
    section = keyring_text.partition(f"[client.{user}]")[2].partition("\n[")[0]
    key = _KEY_LINE.search(section)
    try:
        encoded = b64decode(key[1], validate=True) if key else b""
    except binascii.Error:
        return ""
    return _KEY_TYPES.get(int.from_bytes(encoded[:2], "little"), "")


def without_keys(text: str) -> str:
    """Return a text without the lines that contain a key: librados logs keys that it cannot read."""
    return "".join(line for line in text.splitlines(keepends=True) if not _KEY.search(line))


def monitors_of(endpoints: str) -> tuple[str, ...]:
    """Return the addresses in `data` of Rook's `rook-ceph-mon-endpoints`: `c=10.0.0.12:6789,a=[v2:...,v1:...]`."""
    return tuple(
        sorted(entry.partition("=")[2].strip(" ,") for entry in _NEXT_MONITOR.split(endpoints) if "=" in entry)
    )


_NEXT_MONITOR = re.compile(r",(?=[^,=]*=)")
_PROTOCOL = re.compile(r"^\[?(?:v1|v2|any):")
_MAX_PORT = 65535
_DEFAULT_PORTS = frozenset({"", "3300", "6789"})


def monitor_keys(monitors: Iterable[str]) -> frozenset[str]:
    """Return the monitors' addresses in canonical form: `10.0.0.1`, whose protocol, nonce and default port are dropped.

    Another port is kept: it can be a monitor of another cluster on that host.
    """
    addresses = (address.strip() for monitor in monitors for address in monitor.split(","))
    return frozenset(filter(None, map(_monitor_key, addresses)))


def port_of_its_own(key: str) -> tuple[str, int] | None:
    """Return host and port of a monitor in canonical form; None if it listens on Ceph's default ports."""
    host, separator, port = key.removeprefix("[").rpartition("]:")
    return (host, int(port)) if separator and port.isdecimal() and 0 < int(port) <= _MAX_PORT else None


def is_ip_address(host: str) -> bool:
    with suppress(ValueError):
        ip_address(host)
        return True
    return False


def _monitor_key(text: str) -> str:
    """Return an address with the IP address in its shortest form, or the name in lower case without its final dot."""
    address = _PROTOCOL.sub("", text).partition("/")[0]
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    else:
        host, port = address, ""
    host, port = host.rstrip("]"), port.strip(":]")
    try:
        host = str(ip_address(host))
    except ValueError:
        host = host.lower().rstrip(".")
    return host if port in _DEFAULT_PORTS else f"[{host}]:{port}"
