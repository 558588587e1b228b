"""The cluster and namespace that a command uses, chosen by kubectl's options.

The options are stored in `click.Context.meta`, where the code that reads a source finds them: a command only needs the
decorator.
"""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import yaml

from plimsoll.api.errors import did_you_mean
from plimsoll.cli import PLUGIN, exit_on
from plimsoll.kube.port import ApiError, ForbiddenError, TransientError, UnauthorizedError, UnknownKindError

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube


_REMEDY = "set KUBECONFIG, or give --kubeconfig FILE"
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_ANONYMOUS = "system:anonymous"
"""User of a request without credentials: the kubeconfig has none, or its credential plugin failed."""
_META = "plimsoll.cluster"

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
        return f"context {self.context}" if self.context else "this pod's cluster"

    def connect(self) -> "AioKube":
        # Imported here because it takes longer than everything else.
        from plimsoll.kube.client import AioKube  # noqa: PLC0415

        return AioKube(kubeconfig=self.kubeconfig, context=self.context)


def choose_context(files: str, wanted: str | None, namespace: str | None = None) -> ClusterAccess:
    """Return a context of the files, separated by colons as in KUBECONFIG; the current one by default.

    Exits if there is no such file or context; the message lists the existing ones. Like kubectl, it ignores missing and
    unreadable files.
    """
    paths = [Path(name).expanduser() for name in files.split(os.pathsep) if name]
    contexts: dict[str, str] = {}
    name = wanted
    for path in filter(Path.exists, paths):
        with exit_on(OSError, ValueError, yaml.YAMLError, what=f"the kubeconfig {path} cannot be read: "):
            document = yaml.safe_load(path.read_text())
        if not isinstance(document, dict):
            raise click.ClickException(f"the kubeconfig {path} is not a mapping; {_REMEDY}")
        # The first file that has a value decides.
        name = name or document.get("current-context")
        for entry in document.get("contexts") or ():
            contexts.setdefault(entry["name"], (entry.get("context") or {}).get("namespace") or "")
    if not any(map(Path.exists, paths)):
        raise click.ClickException(f"kubeconfig {files} does not exist; {_REMEDY}")
    if name in contexts:
        return ClusterAccess(kubeconfig=files, context=name, namespace=namespace or contexts[name] or "default")
    listed = ", ".join(sorted(contexts)) or "there are none"
    if not name:
        raise click.ClickException(f"{files} has no current context; choose one with --context: {listed}")
    remedy = did_you_mean(name, contexts) or f"choose one of them: {listed}"
    raise click.ClickException(f"{files} has no context {name}; {remedy}")


def cluster_options(function: F) -> F:
    """Add the options that `access` reads."""

    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        context.meta[f"{_META}.{parameter.name}"] = value

    for *names, metavar, text in (
        ("--kubeconfig", "FILE", "Kubeconfig file (default: KUBECONFIG, or ~/.kube/config)."),
        ("--context", "NAME", "Context of the kubeconfig (default: its current one)."),
        ("-n", "--namespace", "NAME", "Namespace (default: the context's)."),
    ):
        function = click.option(*names, metavar=metavar, help=text, callback=keep, expose_value=False)(function)
    return function


def is_about_a_cluster() -> bool:
    """Whether a bare name means a run in a cluster: kubectl started the program, or an option chooses a cluster."""
    return program() == PLUGIN or any(map(given, ("namespace", "context", "kubeconfig")))


def program() -> str:
    context = click.get_current_context(silent=True)
    return PLUGIN if context is not None and context.find_root().info_name == PLUGIN else "plimsoll"


def access() -> ClusterAccess:
    """Return the cluster and namespace that the options of the current command choose; exits if none is configured."""
    kubeconfig, context, namespace = given("kubeconfig"), given("context"), given("namespace")
    files = kubeconfig or os.environ.get("KUBECONFIG")
    if files is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        try:
            own_namespace = _OWN_NAMESPACE.read_text().strip()
        except OSError:
            own_namespace = "default"
        return ClusterAccess(kubeconfig=None, context=None, namespace=namespace or own_namespace)
    return choose_context(files or str(Path("~/.kube/config").expanduser()), context, namespace)


def ask(where: ClusterAccess, question: "Callable[[AioKube], Awaitable[T]]", *, role: str = "view") -> T:
    """Return the answer of a cluster; exits with the remedy if a request fails, such as the role that it takes."""

    async def answer() -> T:
        async with where.connect() as kube:
            return await question(kube)

    try:
        return asyncio.run(answer())
    except ApiError as error:
        raise click.ClickException(explain(error, where, role)) from error


def explain(error: ApiError, where: ClusterAccess, role: str = "view") -> str:
    match error:
        case ForbiddenError() if isinstance(error, UnauthorizedError) or _ANONYMOUS in error.reason:
            remedy = (
                f"{where.cluster} rejected these credentials; log in again, or choose another context with --context"
            )
        case ForbiddenError():
            remedy = (
                f"ask an administrator of {where.cluster} for a RoleBinding to the ClusterRole plimsoll-{role}, or to "
                f"{role}, which includes it"
            )
        case UnknownKindError():
            remedy = f"is Plimsoll installed in {where.cluster}? --context chooses another cluster"
        case TransientError():
            remedy = f"is the API server of {where.cluster} up, and reachable from here?"
        case _:
            return str(error)
    return f"{error}\n{remedy}"


def kubectl_options() -> str:
    """Return the options with which kubectl uses the same cluster, each after a space."""
    options = {option: given(option) for option in ("context", "kubeconfig")}
    return "".join(f" --{option} {shlex.quote(value)}" for option, value in options.items() if value)


def given(option: str) -> str | None:
    """Return the value of one of the options that choose the cluster; None if the user did not set it."""
    context = click.get_current_context(silent=True)
    value = None if context is None else context.meta.get(f"{_META}.{option}")
    return str(value) if value else None
