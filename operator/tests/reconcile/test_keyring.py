"""Copying keys: from where they are to where pods mount them, and not a word of them anywhere else."""

from base64 import b64decode, b64encode
from typing import Any

import pytest

from plimsoll.kube.port import ForbiddenError, Kind
from plimsoll.lifecycle.decision import CheckSecret, CopyKeyring
from plimsoll.operator.execute import KeyringError, execute, refusal_of
from support.fake_kube import FakeKube

SECRET = Kind(api_version="v1", kind="Secret")
KEY = "AQBkeykeykeykeykeykeykeykeykeykeykeykey=="
COPY = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy", "namespace": "default"}, "immutable": True}


def source(*, allowed: str = "true", **fields: str | bytes) -> dict[str, Any]:
    data = {name: b64encode(text if isinstance(text, bytes) else text.encode()) for name, text in fields.items()}
    metadata = {"name": "source", "namespace": "rook", "annotations": {"plimsoll.dev/allow-benchmarks": allowed}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {name: text.decode() for name, text in data.items()},
    }


def copy(field: str, *, is_keyring: bool = False) -> CopyKeyring:
    return CopyKeyring(
        obj=COPY, user="bench", namespace="rook", secret="source", field=field, is_keyring=is_keyring
    )  # fmt: skip


async def copied(kube: FakeKube, action: CopyKeyring) -> str:
    await execute([action], kube, make_secret=lambda _: {})
    found = await kube.get(SECRET, "copy", "default")
    assert found is not None
    assert found["immutable"] is True
    assert list(found["data"]) == ["keyring"]
    return b64decode(found["data"]["keyring"]).decode()


def api(*objects: dict[str, Any]) -> FakeKube:
    kube = FakeKube(namespaces=["default", "rook"])
    for obj in objects:
        kube.put(obj)
    return kube


async def test_a_mere_key_becomes_a_keyring_file() -> None:
    assert await copied(api(source(userKey=KEY)), copy("userKey")) == f"[client.bench]\nkey = {KEY}\n"


async def test_a_keyring_file_is_copied_as_it_is() -> None:
    text = f'[client.bench]\n\tkey = {KEY}\n\tcaps mon = "profile rbd"\n'
    assert await copied(api(source(keyring=text)), copy("keyring", is_keyring=True)) == text


async def test_what_was_copied_before_is_kept() -> None:
    kube = api(source(userKey=KEY))
    first = await copied(kube, copy("userKey"))
    kube.put(source(userKey="another"))
    assert await copied(kube, copy("userKey")) == first


@pytest.mark.parametrize(
    ("objects", "action", "words"),
    [
        ((), copy("userKey"), "the Secret does not exist"),
        ((source(other=KEY),), copy("userKey"), "it has no field userKey"),
        ((source(userKey=b"\xff\xfe"),), copy("userKey"), "is not text"),
        ((source(keyring=f"[client.x]\nkey = {KEY}"),), copy("keyring", is_keyring=True), "not a keyring file with a"),
    ],
)
async def test_a_key_that_is_not_there_is_named_and_nothing_of_it_told(
    objects: tuple[dict[str, Any], ...], action: CopyKeyring, words: str
) -> None:
    with pytest.raises(KeyringError) as told:
        await execute([action], api(*objects), make_secret=lambda _: {})
    refusal = refusal_of(told.value)
    assert refusal.reason == "KeyringNotFound"
    assert words in refusal.message
    assert "copy the key of client.bench from Secret rook/source" in refusal.message
    assert KEY not in refusal.message


async def test_a_secret_that_may_not_be_read_names_the_right_that_is_missing() -> None:
    def interfere(asked: str) -> None:
        if asked.startswith("get Secret"):
            raise ForbiddenError(asked, "cannot get resource (status 403)")

    kube = api(source(userKey=KEY))
    kube.interfere = interfere
    with pytest.raises(ForbiddenError, match=r"Secret rook/source: cannot get .* bind a Role .* may get this Secret"):
        await execute([copy("userKey")], kube, make_secret=lambda _: {})


@pytest.mark.parametrize("action", [copy("keyring", is_keyring=True), CheckSecret(namespace="rook", secret="source")])
@pytest.mark.parametrize("allowed", ["", "false", "True"])
async def test_a_secret_that_a_user_names_has_to_be_given_to_benchmarks(
    action: CopyKeyring | CheckSecret, allowed: str
) -> None:
    kube = api(source(keyring=f"[client.bench]\nkey = {KEY}", allowed=allowed))
    with pytest.raises(KeyringError) as told:
        await execute([action], kube, make_secret=lambda _: {})
    refusal = refusal_of(told.value)
    assert refusal.reason == "KeyringNotAllowed"
    assert 'Secret rook/source: it has no annotation plimsoll.dev/allow-benchmarks: "true"' in refusal.message
    assert await kube.get(SECRET, "copy", "default") is None


async def test_a_key_that_rook_made_for_the_run_needs_no_leave() -> None:
    assert await copied(api(source(userKey=KEY, allowed="")), copy("userKey"))


async def test_a_secret_that_is_given_to_benchmarks_may_be_mounted_whatever_it_holds() -> None:
    await execute([CheckSecret(namespace="rook", secret="source")], api(source()), make_secret=lambda _: {})
    with pytest.raises(KeyringError, match="use Secret rook/other: the Secret does not exist"):
        await execute([CheckSecret(namespace="rook", secret="other")], api(source()), make_secret=lambda _: {})
