"""Which cluster and namespace a command asks, by the options that kubectl's users know.

The options are kept beside the command (`click.Context.meta`), so that whatever reads a source finds them, and a
command that takes one needs no more than the decorator.
"""

import asyncio
import difflib
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plimsoll.cli import PLUGIN
from plimsoll.cli.kubeconfig import DEFAULT_FILE, choose_context
from plimsoll.kube.errors import ApiError, ForbiddenError, TransientError, UnauthorizedError, UnknownKindError

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube

VIEWER = "plimsoll-view"
"""ClusterRole of the chart, which is also a part of Kubernetes' own `view`."""

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_NOBODY = "system:anonymous"
"""Whom the API server takes somebody for whose kubeconfig gives no credentials, or names a program that fails."""
_META = "plimsoll.cluster"
_NEAR = 3
_LISTED = 10

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An API server and a namespace. `kubeconfig` and `context` None are the pod's own."""

    kubeconfig: str | None
    context: str | None
    namespace: str

    @property
    def cluster(self) -> str:
        """Return what the cluster is called in a message."""
        return f"context {self.context}" if self.context else "this pod's cluster"

    def connect(self) -> "AioKube":
        """Return a connection that is not open yet."""
        # Only here: its import takes longer than everything else of a comparison.
        from plimsoll.kube.client import AioKube  # noqa: PLC0415

        return AioKube(kubeconfig=self.kubeconfig, context=self.context)


def cluster_options(function: F) -> F:
    """Add the options that `access` reads."""
    options = (
        _option("-n", "--namespace", help="Namespace of runs that are named without one; that of the context."),
        _option("--context", help="Context of the kubeconfig; its current one."),
        _option("--kubeconfig", metavar="FILE", help="How to reach the cluster; KUBECONFIG, or ~/.kube/config."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _option(*names: str, help: str, metavar: str = "NAME") -> Callable[[F], F]:  # noqa: A002 - click's word
    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        context.meta[f"{_META}.{parameter.name}"] = value

    return click.option(*names, metavar=metavar, help=help, callback=keep, expose_value=False)


def is_about_a_cluster() -> bool:
    """Tell whether a bare name is that of a run: kubectl asks, or an option names a cluster."""
    return program() == PLUGIN or any(map(_given, ("namespace", "context", "kubeconfig")))


def program() -> str:
    """Return what the user calls this program."""
    context = click.get_current_context(silent=True)
    return PLUGIN if context is not None and context.find_root().info_name == PLUGIN else "plimsoll"


def access() -> Access:
    """Return what the options of the present command lead to.

    Raises:
        click.ClickException: if nothing says which cluster to ask.

    """
    kubeconfig, context, namespace = _given("kubeconfig"), _given("context"), _given("namespace")
    files = kubeconfig or os.environ.get("KUBECONFIG")
    if files is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return Access(kubeconfig=None, context=None, namespace=namespace or _own_namespace())
    files = files or str(DEFAULT_FILE.expanduser())
    chosen = choose_context(files, context)
    return Access(kubeconfig=files, context=chosen.name, namespace=namespace or chosen.namespace)


def ask(where: Access, question: "Callable[[AioKube], Awaitable[T]]") -> T:
    """Return what a cluster answers.

    Raises:
        click.ClickException: saying what it does not, and what to do.

    """

    async def answer() -> T:
        async with where.connect() as kube:
            return await question(kube)

    try:
        return asyncio.run(answer())
    except ApiError as error:
        raise click.ClickException(explain(error, where)) from error


def explain(error: ApiError, where: Access) -> str:
    """Return what went wrong, and what to do."""
    match error:
        case ForbiddenError() if isinstance(error, UnauthorizedError) or _NOBODY in error.reason:
            remedy = (
                f"{where.cluster} does not accept these credentials; log in again, or choose another with --context"
            )
        case ForbiddenError():
            remedy = (
                f"ask whoever looks after {where.cluster} for a RoleBinding to the ClusterRole {VIEWER} there, or to "
                "view, of which that is a part"
            )
        case UnknownKindError():
            remedy = f"is Plimsoll installed in {where.cluster}? --context chooses another cluster"
        case TransientError():
            remedy = f"is the API server of {where.cluster} up, and can it be reached from here?"
        case _:
            return str(error)
    return f"{error}\n{remedy}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the names that somebody may have meant, as the end of a sentence; empty if nothing is known."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=_NEAR)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"; there are {', '.join(names[:_LISTED])}{more}" if names else ""


def _given(option: str) -> str | None:
    context = click.get_current_context(silent=True)
    value = None if context is None else context.meta.get(f"{_META}.{option}")
    return str(value) if value else None


def _own_namespace() -> str:
    try:
        return _OWN_NAMESPACE.read_text().strip()
    except OSError:
        return "default"
