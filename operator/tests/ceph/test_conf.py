"""The files that a Ceph client reads."""

from configparser import ConfigParser

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plimsoll.ceph.document import ceph_conf, keyring, monitor_keys, monitors_of

MONITORS = st.lists(st.from_regex(r"192\.0\.2\.[0-9]{1,3}:6789", fullmatch=True), min_size=1, unique=True)


def test_a_configuration_names_monitors_and_keyring_and_turns_the_cache_off() -> None:
    parser = ConfigParser()
    parser.read_string(ceph_conf(["192.0.2.2:6789", "192.0.2.1:6789"]))
    assert dict(parser["global"]) == {
        "mon_host": "192.0.2.1:6789,192.0.2.2:6789",
        "keyring": "/etc/plimsoll/ceph/keyring",
    }
    assert dict(parser["client"]) == {"rbd_cache": "false", "rbd_blocklist_on_break_lock": "false"}


@given(MONITORS)
def test_the_order_of_monitors_does_not_matter(monitors: list[str]) -> None:
    endpoints = [f"{chr(97 + number % 26)}={monitor}" for number, monitor in enumerate(monitors)]
    assert monitors_of(",".join(endpoints)) == monitors_of(",".join(reversed(endpoints))) == tuple(sorted(monitors))
    assert ceph_conf(monitors) == ceph_conf(reversed(monitors))


def test_rooks_endpoints_are_read() -> None:
    found = monitors_of("c=10.240.0.12:6789,a=10.240.0.11:6789,b=10.240.0.13:6789")
    assert found == ("10.240.0.11:6789", "10.240.0.12:6789", "10.240.0.13:6789")
    assert monitors_of("") == ()


def test_a_keyring_has_cephs_format() -> None:
    assert keyring("plimsoll-x-agent", "QUFB") == "[client.plimsoll-x-agent]\nkey = QUFB\n"


@pytest.mark.parametrize(
    "addresses",
    [
        ["10.0.0.1:6789", "10.0.0.2:6789"],
        ["[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]", "[v2:10.0.0.2:3300/0,v1:10.0.0.2:6789/0]"],
        ["[v2:10.0.0.1:3300/0]", "v2:10.0.0.2:3300"],
        ["[v2:[fd00::1]:3300/0,v1:[fd00::1]:6789/0]", "[fd00::2]:6789"],
    ],
)
def test_every_form_of_an_address_is_one_monitor(addresses: list[str]) -> None:
    endpoints = ",".join(f"{name}={address}" for name, address in zip("ab", addresses, strict=True))
    assert monitors_of(endpoints) == tuple(sorted(addresses))
    hosts = {"fd00::1", "fd00::2"} if "fd00" in endpoints else {"10.0.0.1", "10.0.0.2"}
    assert monitor_keys(addresses) == monitor_keys([",".join(addresses)]) == hosts
