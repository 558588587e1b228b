"""An invalid kubeconfig causes a message of one line without secrets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.kube.client import AioKube
from plimsoll.kube.port import CredentialsError

SECRET = "c2VjcmV0"

Change = Callable[[dict[str, Any]], object]


def config(path: Path, change: Change) -> str:
    document: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"client-key-data": SECRET, "token": SECRET}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    change(document)
    path.write_text(yaml.safe_dump(document))
    return str(path)


def user(**changes: Any) -> Change:
    return lambda document: document["users"][0]["user"].update(changes)


def cluster(**changes: Any) -> Change:
    return lambda document: document["clusters"][0]["cluster"].update(changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (user(**{"client-certificate": "/nowhere"}), "File does not exist"),
        (cluster(**{"certificate-authority-data": "aGVsbG8="}), "no certificate"),
        (cluster(**{"certificate-authority-data": "A"}), "the kubeconfig is invalid"),
        (lambda document: document.update(clusters=[]), "Expected object with name c"),
        (lambda document: document.update(users=[]), "the kubeconfig is invalid"),
        (lambda document: document["users"][0].update(user=SECRET), "the kubeconfig is invalid"),
        (lambda document: document["contexts"].insert(0, 7), "the kubeconfig is invalid"),
    ],
    ids=["certificate", "authority", "base64", "cluster", "user", "credentials", "context"],
)
async def test_broken_kubeconfig_is_refused(tmp_path: Path, change: Change, words: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        async with AioKube(kubeconfig=config(tmp_path / "config", change)):
            pytest.fail("it was taken")
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


async def test_wanted_context_is_used(tmp_path: Path) -> None:
    def add(document: dict[str, Any]) -> None:
        document["contexts"].append({"name": "y", "context": {"cluster": "none", "user": "u"}})

    path = config(tmp_path / "config", add)
    async with AioKube(kubeconfig=path, context="x"):
        pass
    with pytest.raises(CredentialsError, match="Expected object with name none"):
        async with AioKube(kubeconfig=path, context="y"):
            pytest.fail("it was taken")
