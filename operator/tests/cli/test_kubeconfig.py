"""The choice of cluster and namespace, as in kubectl."""

import os
from pathlib import Path

import click
import pytest

from plimsoll.cli.cluster import access, choose_context
from support.command_line import context_file


def refusal(files: str, wanted: str | None = None) -> str:
    with pytest.raises(click.ClickException) as caught:
        choose_context(files, wanted)
    return caught.value.message


@pytest.mark.parametrize(("wanted", "context", "namespace"), [(None, "b", "bench"), ("a", "a", "default")])
def test_the_wanted_or_the_current_context_is_taken(
    tmp_path: Path, wanted: str | None, context: str, namespace: str
) -> None:
    config = context_file(tmp_path / "config", current="b", contexts={"a": None, "b": "bench"})
    chosen = choose_context(config, wanted)
    assert (chosen.context, chosen.namespace) == (context, namespace)


def test_first_file_that_says_something_decides(tmp_path: Path) -> None:
    files = [
        context_file(tmp_path / "empty", current="", contexts={}),
        context_file(tmp_path / "first", current="a", contexts={"a": "of-the-first"}),
        context_file(tmp_path / "second", current="b", contexts={"a": "of-the-second", "b": None}),
    ]
    chosen = choose_context(os.pathsep.join([str(tmp_path / "absent"), "", *files]), None)
    assert (chosen.context, chosen.namespace) == ("a", "of-the-first")


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    context_file(tmp_path / "config", current="a", contexts={"a": None})
    assert choose_context("~/config", None).context == "a"


def test_no_file_is_refused(tmp_path: Path) -> None:
    said = refusal(str(tmp_path / "none"))
    assert said.startswith(f"kubeconfig {tmp_path}/none does not exist; set KUBECONFIG")


def test_unknown_context_is_refused_with_names_like_it(tmp_path: Path) -> None:
    config = context_file(tmp_path / "config", current="gone", contexts={"prod": None, "staging": None})
    assert refusal(config, "stagin") == f"{config} has no context stagin; did you mean staging?"
    assert refusal(config) == f"{config} has no context gone; choose one of them: prod, staging"


def test_without_a_current_context_all_are_named(tmp_path: Path) -> None:
    config = context_file(tmp_path / "config", current=None, contexts={"b": None, "a": None})
    assert refusal(config) == f"{config} has no current context; choose one with --context: a, b"


@pytest.mark.parametrize(("text", "words"), [("[", "cannot be read"), ("7", "is not a mapping"), ("", "not a mapping")])
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert words in refusal(str(path))


# Without options


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


def test_default_file_is_the_users(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    config = context_file(tmp_path / ".kube" / "config", current="a", contexts={"a": "mine"})
    found = access()
    assert (found.kubeconfig, found.context, found.namespace) == (config, "a", "mine")


def test_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = context_file(tmp_path / "other", current="a", contexts={"a": None})
    monkeypatch.setenv("KUBECONFIG", config)
    assert access().kubeconfig == config


def test_in_a_pod_its_own_credentials_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    namespace = tmp_path / "namespace"
    monkeypatch.setattr("plimsoll.cli.cluster._OWN_NAMESPACE", namespace)
    assert (access().kubeconfig, access().context, access().namespace) == (None, None, "default")
    namespace.write_text("bench\n")
    assert access().namespace == "bench"
    assert access().cluster == "this pod's cluster"


def test_in_a_pod_a_named_file_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setenv("KUBECONFIG", context_file(tmp_path / "other", current="a", contexts={"a": None}))
    assert access().context == "a"
