"""Chooses the context of a kubeconfig as kubectl does.

With several files, the first one that defines a context or a current context wins; the client library would use the
last one.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from plimsoll.api.wording import did_you_mean

DEFAULT_FILE = Path("~/.kube/config")
_REMEDY = "set KUBECONFIG, or give --kubeconfig FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeContext:
    """A context and its default namespace."""

    name: str
    namespace: str = "default"


def choose_context(files: str, wanted: str | None) -> KubeContext:
    """Return a context of the files, separated by colons as in KUBECONFIG; the current one by default.

    Raises:
        click.ClickException: if there is no such file or context; the message lists those that exist.

    """
    documents = [_read(path) for path in _paths(files)]
    if not documents:
        message = f"kubeconfig {files} does not exist; {_REMEDY}"
        raise click.ClickException(message)
    namespaces: dict[str, str] = {}
    for document in documents:
        for name, namespace in _contexts(document):
            namespaces.setdefault(name, namespace)
    name = wanted or next((str(one["current-context"]) for one in documents if one.get("current-context")), "")
    if name in namespaces:
        return KubeContext(name=name, namespace=namespaces[name] or "default")
    if not name:
        message = f"{files} has no current context; choose one with --context: {_listed(namespaces)}"
        raise click.ClickException(message)
    remedy = did_you_mean(name, namespaces) or f"choose one of them: {_listed(namespaces)}"
    message = f"{files} has no context {name}; {remedy}"
    raise click.ClickException(message)


def _paths(files: str) -> Iterator[Path]:
    """Yield the existing files; kubectl ignores missing ones."""
    for name in files.split(os.pathsep):
        path = Path(name).expanduser()
        if name and path.exists():
            yield path


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        message = f"the kubeconfig {path} cannot be read: {error}"
        raise click.ClickException(message) from error
    if not isinstance(document, dict):
        message = f"the kubeconfig {path} is not a mapping; {_REMEDY}"
        raise click.ClickException(message)
    return document


def _contexts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and namespace of every readable context; invalid ones are ignored."""
    for entry in document.get("contexts") or ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            inside = entry.get("context")
            yield entry["name"], str(inside.get("namespace") or "") if isinstance(inside, dict) else ""


def _listed(namespaces: Mapping[str, str]) -> str:
    return ", ".join(sorted(namespaces)) or "there are none"
