"""The stand-in for Rook (e2e/rook) replaces keys as Rook does (pkg/operator/ceph/config/keyring of its sources)."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hack.rook_stand_in import Play, loaded_stand_in
from support.goldens import NEW_ROOK, OLD_ROOK, rook

KEYS: dict[str, str] = json.loads(rook("keys", NEW_ROOK))
AES, AES256K = KEYS["bench-aes"], KEYS["bench-aes256k"]
CAPS = {"mon": "profile rbd", "osd": "profile rbd pool=bench"}
NAME, ENTITY, SECRET = "plimsoll-run-conductor", "client.plimsoll-run-conductor", "plimsoll-0"
DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "ceph.md"


@pytest.fixture
def stand_in() -> Iterator[Mapping[str, ModuleType]]:
    with loaded_stand_in() as modules:
        yield modules


def documented_change() -> dict[str, Any]:
    """Return the patch of the specification that the documentation gives for another key."""
    (found,) = re.findall(r"patch cephclient NAME --type merge -p '([^']*)'", DOCUMENT.read_text())
    change: dict[str, Any] = json.loads(found)["spec"]
    return change


def security(**cephx: Any) -> dict[str, Any]:
    return {"security": {"cephx": cephx}}


@pytest.fixture
def played(stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> Play:
    """Return the newer Rook with a run's user."""
    return with_user(stand_in, monkeypatch, NEW_ROOK)


def with_user(stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch, version: str) -> Play:
    played = Play(stand_in, monkeypatch, version, "CephClient")
    played.ceph.next_keys[ENTITY] = [AES256K, AES, "third", "fourth"]
    played.create(NAME, {"caps": CAPS, "secretName": SECRET})
    played.work()
    return played


def key(played: Play) -> str:
    secret = played.api.get("Secret", SECRET)
    assert secret is not None
    stored, named = (b64decode(secret["data"][field]).decode() for field in ("userKey", NAME))
    assert stored == named == played.ceph.keys[ENTITY]
    return stored


def reported(played: Play) -> dict[str, Any]:
    user = played.object(NAME)
    assert user["status"]["observedGeneration"] == user["metadata"]["generation"]
    assert user["status"]["phase"] == "Ready"
    cephx: dict[str, Any] = user["status"]["cephx"]
    return cephx


def rotations(played: Play) -> list[str]:
    return [command for command in played.ceph.commands if command.startswith("auth rotate")]


def test_the_documented_change_replaces_the_key_once(played: Play) -> None:
    assert (key(played), reported(played)) == (AES256K, {"keyCephVersion": "20.2.4-0", "keyGeneration": 1})
    played.change(NAME, documented_change())
    assert (key(played), reported(played)) == (
        AES,
        {"keyCephVersion": "20.2.4-0", "keyGeneration": 2, "keyType": "aes"},
    )
    played.change(NAME, {"caps": CAPS | {"mgr": "allow r"}})
    assert (key(played), reported(played)["keyGeneration"]) == (AES, 2)
    assert rotations(played) == [f"auth rotate {ENTITY} --key-type aes --format json"]
    assert f"auth caps {ENTITY} mgr allow r mon profile rbd osd profile rbd pool=bench --format json" in (
        played.ceph.commands
    )


def test_another_type_replaces_the_key_and_a_generation_may_be_skipped(played: Play) -> None:
    played.change(NAME, security(keyRotationPolicy="KeyGeneration", keyType="aes"))
    assert (key(played), reported(played)["keyGeneration"], reported(played)["keyType"]) == (AES, 2, "aes")
    played.change(NAME, security(keyGeneration=7, keyType=None))
    assert (key(played), reported(played)) == ("third", {"keyCephVersion": "20.2.4-0", "keyGeneration": 7})


@pytest.mark.parametrize(
    "cephx",
    [
        {"keyType": "aes"},
        {"keyType": "aes", "keyGeneration": 5},
        {"keyRotationPolicy": "Disabled", "keyType": "aes", "keyGeneration": 5},
        {"keyRotationPolicy": "KeyGeneration"},
        {"keyRotationPolicy": "KeyGeneration", "keyGeneration": 1},
    ],
)
def test_nothing_else_replaces_the_key(played: Play, cephx: dict[str, Any]) -> None:
    played.change(NAME, security(**cephx))
    assert (key(played), reported(played)) == (AES256K, {"keyCephVersion": "20.2.4-0", "keyGeneration": 1})
    assert rotations(played) == []


def test_a_new_user_begins_with_the_wanted_type_and_generation(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Play(stand_in, monkeypatch, NEW_ROOK, "CephClient")
    played.ceph.next_keys[ENTITY] = [AES]
    wanted = security(keyRotationPolicy="KeyGeneration", keyGeneration=3, keyType="aes")
    played.create(NAME, {"caps": CAPS, "secretName": SECRET} | wanted)
    played.work()
    assert (key(played), reported(played)["keyGeneration"], rotations(played)) == (AES, 3, [])
    assert any(
        command.startswith(f"auth get-or-create-key {ENTITY} ") and " --key-type aes " in command
        for command in played.ceph.commands
    )


def test_the_older_release_never_replaces_a_key(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Ceph, 18.2, has no command for that."""
    played = with_user(stand_in, monkeypatch, OLD_ROOK)
    played.change(NAME, documented_change())
    assert (key(played), reported(played)) == (AES256K, {"keyCephVersion": "18.2.7-0", "keyGeneration": 1})
    assert not any("--key-type" in command or "rotate" in command for command in played.ceph.commands)


def test_a_rotation_that_fails_is_reported_and_tried_again(
    played: Play, stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, failures = played.ceph.run, [13]

    def fail(*command: str, seconds: float | None = 60) -> str:
        if "rotate" in command and failures:
            raise stand_in["ceph"].CommandError("Error EACCES: access denied", f"exit status {failures.pop()}")
        return run(*command, seconds=seconds)

    monkeypatch.setattr(stand_in["ceph"], "run", fail)
    played.change(NAME, documented_change())
    assert (key(played), reported(played)["keyGeneration"]) == (AES, 2)
    assert played.events()[-2][2] == (
        f'failed to reconcile CephClient "rook-ceph/{NAME}". failed to create or update client "{NAME}": failed to '
        f'rotate cephx key for client "{ENTITY}": failed auth rotate {ENTITY}: exit status 13'
    )
    assert "Failure" in [state["status"]["phase"] for state in played.api.history[NAME] if state["status"]]
