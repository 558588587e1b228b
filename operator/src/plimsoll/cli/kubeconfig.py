"""Which context of which kubeconfig, as kubectl chooses it.

Of several files the first that names a context, or a current one, decides: the client library would take the last.
"""

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

DEFAULT_FILE = Path("~/.kube/config")
_REMEDY = "set KUBECONFIG, or give --kubeconfig FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A context. `namespace` is the one to use where none is named."""

    name: str
    namespace: str = "default"


def choose_context(files: str, wanted: str | None) -> Context:
    """Return a context of the files, separated by colons as in KUBECONFIG; the current one if none is wanted.

    Raises:
        click.ClickException: if there is no such file or context, saying which there are.

    """
    documents = [_read(path) for path in _paths(files)]
    if not documents:
        message = f"there is no kubeconfig {files}, so it is not known which cluster to ask; {_REMEDY}"
        raise click.ClickException(message)
    namespaces: dict[str, str] = {}
    for document in documents:
        for name, namespace in _contexts(document):
            namespaces.setdefault(name, namespace)
    name = wanted or next((str(one["current-context"]) for one in documents if one.get("current-context")), "")
    if name in namespaces:
        return Context(name=name, namespace=namespaces[name] or "default")
    if not name:
        message = f"{files} has no current context; choose one with --context: {_listed(namespaces)}"
        raise click.ClickException(message)
    near = difflib.get_close_matches(name, namespaces, n=3)
    message = f"{files} has no context {name}; {_suggestion(near, namespaces)}"
    raise click.ClickException(message)


def _paths(files: str) -> Iterator[Path]:
    """Yield the files that exist: kubectl overlooks one of KUBECONFIG that does not."""
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
    """Yield name and namespace of every context that can be read; what is wrong with another is no concern here."""
    for entry in document.get("contexts") or ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            inside = entry.get("context")
            yield entry["name"], str(inside.get("namespace") or "") if isinstance(inside, dict) else ""


def _suggestion(near: list[str], namespaces: Mapping[str, str]) -> str:
    return f"did you mean {' or '.join(near)}?" if near else f"choose one of them: {_listed(namespaces)}"


def _listed(namespaces: Mapping[str, str]) -> str:
    return ", ".join(sorted(namespaces)) or "there are none"
