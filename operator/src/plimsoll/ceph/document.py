"""Reading the JSON output of Ceph's commands.

It changes with every release, so unknown fields are ignored. A required field that is missing or of another type is a
`ValueError` that names it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self

_QUOTED = 40
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a document, and its path. Every method raises ValueError if the value has another type."""

    value: object
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a document."""
        try:
            return cls(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"Ceph's answer is not JSON: {str(error)[:80]}: {text[:_QUOTED]!r}") from None

    def __getitem__(self, key: str) -> "Node":
        """Return a field of an object; ValueError if it is absent."""
        fields = self._fields()
        if key not in fields:
            raise ValueError(f"Ceph's answer has no field {self._below(key)}")
        return Node(fields[key], self._below(key))

    def get(self, key: str) -> "Node | None":
        """Return a field of an object; None if it is absent or null."""
        fields = self._fields()
        return None if fields.get(key) is None else Node(fields[key], self._below(key))

    def items(self) -> Iterator[tuple[str, "Node"]]:
        """Yield the fields of an object."""
        for key, value in self._fields().items():
            yield key, Node(value, self._below(key))

    def elements(self) -> Iterator["Node"]:
        """Yield the elements of a list."""
        if not isinstance(self.value, list):
            raise self._not("a list")
        for position, value in enumerate(self.value):
            yield Node(value, f"{self.path}[{position}]")

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self.value, str):
            raise self._not("a string")
        return self.value

    def truth(self) -> bool:
        """Return a boolean."""
        if not isinstance(self.value, bool):
            raise self._not("true or false")
        return self.value

    def integer(self) -> int:
        """Return a whole number, which Ceph may write as a string."""
        number = self.number()
        if number != int(number):
            raise self._not("a whole number")
        return int(number) if not isinstance(self.value, int) else self.value

    def count(self) -> int:
        """Return a whole number that is not negative."""
        number = self.integer()
        if number < 0:
            raise self._not("a number of at least 0")
        return number

    def number(self) -> float:
        """Return a finite number, which Ceph may write as a string."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | str):
            raise self._not("a number")
        try:
            number = float(self.value)
        except (ValueError, OverflowError):
            raise self._not("a number") from None
        if not -_LARGEST < number < _LARGEST:
            raise self._not("a number below 2^63")
        return number

    def _fields(self) -> dict[str, object]:
        if not isinstance(self.value, dict):
            raise self._not("an object")
        return self.value

    def _below(self, key: str) -> str:
        return f"{self.path}.{key[:_QUOTED]}" if self.path else key[:_QUOTED]

    def _not(self, wanted: str) -> ValueError:
        value = str(self.value)[:_QUOTED]
        place = f"field {self.path} of Ceph's answer" if self.path else "Ceph's answer"
        return ValueError(f"{place} is not {wanted}: {value!r}")


MOUNT = "/etc/plimsoll/ceph"
CONF_FILE = "ceph.conf"
KEYRING_FILE = "keyring"
CONF_PATH = f"{MOUNT}/{CONF_FILE}"

OSD_BENCH_MOUNT = "/etc/plimsoll/osd-bench"
"""Directory of the administrator's keyring for `osdBench`, which is also a file `keyring`."""


def ceph_conf(monitors: Iterable[str]) -> str:
    """Return `ceph.conf` for these addresses; their order does not matter.

    librbd's cache is off; only `volume.rbdCache` turns it on, for a command. A client breaks the lock of a dead
    predecessor without blocklisting it: an image belongs to one client of one run, and the run's users must not be able
    to blocklist others.
    """
    return (
        "[global]\n"
        f"mon_host = {','.join(sorted(monitors))}\n"
        f"keyring = {MOUNT}/{KEYRING_FILE}\n"
        "\n"
        "[client]\n"
        "rbd_cache = false\n"
        "rbd_blocklist_on_break_lock = false\n"
    )


def keyring(user: str, key: str) -> str:
    """Return a keyring file. `user` is without `client.`."""
    return f"[client.{user}]\nkey = {key}\n"


def monitors_of(endpoints: str) -> tuple[str, ...]:
    """Return the sorted addresses in the field `data` of Rook's ConfigMap `rook-ceph-mon-endpoints`.

    The field contains `c=10.0.0.12:6789,a=10.0.0.11:6789`, in changing order.
    """
    entries = (entry.strip() for entry in endpoints.split(","))
    return tuple(sorted(entry.partition("=")[2] for entry in entries if "=" in entry))


_PROTOCOL = re.compile(r"^\[?(?:v1|v2|any):")
_DEFAULT_PORTS = frozenset({"", "3300", "6789"})


def monitor_keys(monitors: Iterable[str]) -> frozenset[str]:
    """Return the monitors' addresses in canonical form, whichever forms `mon_host` uses.

    Protocol, nonce and default ports do not identify a monitor: `10.0.0.1`, `10.0.0.1:6789` and `[v2:10.0.0.1:3300/0]`
    are the same one. Another port can be a monitor of another cluster on that host.
    """
    addresses = (address.strip() for monitor in monitors for address in monitor.split(","))
    return frozenset(filter(None, map(_monitor_key, addresses)))


def _monitor_key(text: str) -> str:
    address = _PROTOCOL.sub("", text).partition("/")[0]
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    else:
        host, port = address, ""
    host, port = _canonical(host.rstrip("]")), port.strip(":]")
    return host if port in _DEFAULT_PORTS else f"[{host}]:{port}"


def _canonical(host: str) -> str:
    """Return an IP address in its shortest form, or a name without its final dot, in lower case."""
    try:
        return str(ip_address(host))
    except ValueError:
        return host.lower().rstrip(".")
