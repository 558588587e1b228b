"""Keys of both types, as Ceph makes them, and clients that can read them."""

import json

import pytest

from plimsoll.ceph.document import key_type, keyring, without_keys
from plimsoll.ceph.versions import cannot_read
from support.goldens import NEW_ROOK, rook

KEYS: dict[str, str] = json.loads(rook("keys", NEW_ROOK))
AES, AES256K = KEYS["bench-aes"], KEYS["bench-aes256k"]
OTHERS = f'[client.first]\n\tkey = {AES}\n\tcaps mon = "allow r"\n[client.second]\n\tkey={AES256K}\n[client.none]\n'


@pytest.mark.parametrize(
    ("text", "user", "found"),
    [
        (keyring("u", AES), "u", "aes"),
        (keyring("u", AES256K), "u", "aes256k"),
        (OTHERS, "first", "aes"),
        (OTHERS, "second", "aes256k"),
        (OTHERS, "none", ""),
        (OTHERS, "absent", ""),
        ("", "u", ""),
        (keyring("u", "key"), "u", ""),
        (keyring("u", "AwA9rwhr"), "u", ""),
    ],
)
def test_the_type_of_a_key_is_read_from_its_keyring(text: str, user: str, found: str) -> None:
    assert key_type(text, user) == found


@pytest.mark.parametrize(
    ("version", "is_too_old"),
    [
        ("ceph version 17.2.9 (0) quincy (stable)", True),
        ("ceph version 18.2.7 (0) reef (stable)", True),
        ("ceph version 19.2.5 (0) squid (stable)", True),
        ("ceph version 19.2.6 (0) squid (stable)", False),
        ("ceph version 20.2.3 (0) tentacle (stable - RelWithDebInfo)", True),
        ("ceph version 20.2.4 (0) tentacle (stable - RelWithDebInfo)", False),
        ("ceph version 20.10.0 (0) tentacle (stable)", False),
        ("ceph version 21.0.0 (0) umbrella (dev)", False),
        ("ceph version Development", False),
        ("", False),
    ],
)
def test_clients_from_before_the_new_type_cannot_read_it(version: str, *, is_too_old: bool) -> None:
    assert cannot_read(version, "aes256k") == is_too_old
    assert not cannot_read(version, "aes")


@pytest.mark.parametrize("key", [AES, AES256K, AES256K[:20]])
def test_lines_with_a_key_are_left_out(key: str) -> None:
    log = f"before\nerror setting modifier for [client.u] type=key val={key}Malformed input\nafter: AQAD\n"
    assert without_keys(log) == "before\nafter: AQAD\n"
    assert without_keys(f"key={key}") == ""


def test_other_text_is_kept_as_it_is() -> None:
    text = "a/AgAAbbbbbbbbbbbbbbbbbbbbbbbbb\r\nfio: pid=0\n\nlast"
    assert without_keys(text) == text
