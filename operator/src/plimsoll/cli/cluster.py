"""The cluster and namespace that a command uses, chosen by kubectl's options.

The options are stored in `click.Context.meta`, where the code that reads a source finds them: a command only needs the
decorator.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import yaml

from plimsoll.api.errors import did_you_mean
from plimsoll.cli import PLUGIN
from plimsoll.kube.errors import ApiError, ForbiddenError, TransientError, UnauthorizedError, UnknownKindError
from plimsoll.report.view import first_few

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube


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


VIEWER = "plimsoll-view"
"""ClusterRole of the chart, aggregated to Kubernetes' `view`."""

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_ANONYMOUS = "system:anonymous"
"""User of a request without credentials: the kubeconfig has none, or its credential plugin failed."""
_META = "plimsoll.cluster"
_LISTED = 10

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """An API server and a namespace. Without `kubeconfig` and `context` it is the pod's own cluster."""

    kubeconfig: str | None
    context: str | None
    namespace: str

    @property
    def cluster(self) -> str:
        """Return the name of the cluster in messages."""
        return f"context {self.context}" if self.context else "this pod's cluster"

    def connect(self) -> "AioKube":
        """Return a client, not connected yet."""
        # Imported here because it takes longer than everything else.
        from plimsoll.kube.client import AioKube  # noqa: PLC0415

        return AioKube(kubeconfig=self.kubeconfig, context=self.context)


def cluster_options(function: F) -> F:
    """Add the options that `access` reads."""
    options = (
        _option("-n", "--namespace", help="Namespace of runs given by name only (default: the context's)."),
        _option("--context", help="Context of the kubeconfig (default: its current one)."),
        _option("--kubeconfig", metavar="FILE", help="Kubeconfig file (default: KUBECONFIG, or ~/.kube/config)."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _option(*names: str, help: str, metavar: str = "NAME") -> Callable[[F], F]:  # noqa: A002 - click's word
    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        context.meta[f"{_META}.{parameter.name}"] = value

    return click.option(*names, metavar=metavar, help=help, callback=keep, expose_value=False)


def is_about_a_cluster() -> bool:
    """Whether a bare name is that of a run: kubectl started the program, or an option chooses a cluster."""
    return program() == PLUGIN or any(map(_given, ("namespace", "context", "kubeconfig")))


def program() -> str:
    """Return the name with which the user started this program."""
    context = click.get_current_context(silent=True)
    return PLUGIN if context is not None and context.find_root().info_name == PLUGIN else "plimsoll"


def access() -> ClusterAccess:
    """Return the cluster and namespace that the options of the current command choose.

    Raises:
        click.ClickException: if no cluster is configured.

    """
    kubeconfig, context, namespace = _given("kubeconfig"), _given("context"), _given("namespace")
    files = kubeconfig or os.environ.get("KUBECONFIG")
    if files is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return ClusterAccess(kubeconfig=None, context=None, namespace=namespace or _own_namespace())
    files = files or str(DEFAULT_FILE.expanduser())
    chosen = choose_context(files, context)
    return ClusterAccess(kubeconfig=files, context=chosen.name, namespace=namespace or chosen.namespace)


def ask(where: ClusterAccess, question: "Callable[[AioKube], Awaitable[T]]") -> T:
    """Return the answer of a cluster.

    Raises:
        click.ClickException: if a request fails, with the remedy.

    """

    async def answer() -> T:
        async with where.connect() as kube:
            return await question(kube)

    try:
        return asyncio.run(answer())
    except ApiError as error:
        raise click.ClickException(explain(error, where)) from error


def explain(error: ApiError, where: ClusterAccess) -> str:
    """Return the error with its remedy."""
    match error:
        case ForbiddenError() if isinstance(error, UnauthorizedError) or _ANONYMOUS in error.reason:
            remedy = (
                f"{where.cluster} rejected these credentials; log in again, or choose another context with --context"
            )
        case ForbiddenError():
            remedy = (
                f"ask an administrator of {where.cluster} for a RoleBinding to the ClusterRole {VIEWER}, or to view, "
                "which includes it"
            )
        case UnknownKindError():
            remedy = f"is Plimsoll installed in {where.cluster}? --context chooses another cluster"
        case TransientError():
            remedy = f"is the API server of {where.cluster} up, and reachable from here?"
        case _:
            return str(error)
    return f"{error}\n{remedy}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the names that the user may have meant, as the end of a sentence; empty if none is known."""
    names = sorted(known)
    if question := did_you_mean(name, names):
        return f"; {question}"
    return f"; there are {first_few(names, _LISTED)}" if names else ""


def _given(option: str) -> str | None:
    context = click.get_current_context(silent=True)
    value = None if context is None else context.meta.get(f"{_META}.{option}")
    return str(value) if value else None


def _own_namespace() -> str:
    try:
        return _OWN_NAMESPACE.read_text().strip()
    except OSError:
        return "default"
