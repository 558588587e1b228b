"""Performs actions. Every action is idempotent.

An existing object with the name of one to be created must belong to the run: other owners' objects are never adopted.
"""

import asyncio
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from plimsoll.api.reasons.reason import Reason
from plimsoll.ceph.document import KEYRING_FILE, keyring
from plimsoll.kube import port
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle import shapes
from plimsoll.lifecycle.children import belongs_to_same_run, is_departing, label
from plimsoll.lifecycle.decision import Action, CheckSecret, CopyKeyring, Create, CreateSecret, Delete
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS, LABEL_RUN_UID
from plimsoll.lifecycle.refusals import Refusal, reason_of_words

_SECRET = Kind(api_version="v1", kind="Secret")

CONCURRENCY = 8  # requests: enough to create a run of 500 clients in seconds
MakeSecret = Callable[[int], Mapping[str, bytes]]  # number of clients -> a new session secret: key -> content


class TakenError(port.ApiError):
    """Another owner's object occupies the name of one to be created. `departing`: it will disappear by itself."""

    def __init__(self, asked: str, reason: str, *, departing: bool) -> None:
        self.departing = departing
        super().__init__(asked, reason)


class KeyringError(port.ApiError):
    """A Secret with a Ceph key does not exist, or has no key. The message never quotes its content."""


class KeyringRefusedError(KeyringError):
    """A Secret that a user names is not annotated as being for benchmarks."""


def refusal_of(error: port.ApiError) -> Refusal:
    match error:
        case TakenError():
            reason = Reason.WAITING_FOR_EARLIER_RUN if error.departing else Reason.NAME_TAKEN
        case KeyringRefusedError():
            reason = Reason.KEYRING_NOT_ALLOWED
        case KeyringError():
            reason = Reason.KEYRING_NOT_FOUND
        case port.TerminatingError():
            reason = Reason.NAMESPACE_TERMINATING
        case _:
            reason = reason_of_words(error.reason, passing=isinstance(error, port.TransientError | port.ConflictError))
    return Refusal(asked=error.asked, reason=reason, words=error.reason)


async def execute(
    actions: Sequence[Action], kube: Kube, *, make_secret: MakeSecret, retry_seconds: float = 20.0
) -> None:
    """Perform actions, a few at a time. Consecutive actions of one type finish before the next type starts.

    So a Secret exists before what needs it, and creations never mix with deletions. Each wave of creations is a type,
    and so are RoleBindings: if their deletion is refused, the load has been stopped. ApiError: the first failure that
    retries do not fix; later actions were not started.
    """

    async def work(waiting: Iterator[Action]) -> None:
        for action in waiting:
            await port.persist(partial(_perform, action, kube, make_secret), seconds=retry_seconds)

    def batch(action: Action) -> tuple[type[Action], int]:
        match action:
            case Create(wave=wave):
                return Create, wave
            case Delete(child=child):
                return Delete, int(child.kind == "RoleBinding")
        return type(action), 0

    for _, same_type in groupby(actions, key=batch):
        waiting = iter([*same_type])
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(CONCURRENCY):
                    group.create_task(work(waiting))
        except ExceptionGroup as failures:
            # They have one cause, an outage or a refusal: the first error names it.
            raise failures.exceptions[0] from None


async def _perform(action: Action, kube: Kube, make_secret: MakeSecret) -> None:
    match action:
        case Create(obj=obj):
            if await kube.create(obj):
                return
            # The object that occupies the name has to belong to the same run.
            kind, name, namespace = Kind.of(obj), obj["metadata"]["name"], obj["metadata"].get("namespace")
            existing = await kube.get(kind, name, namespace, shape=shapes.Result)
            asked = f"create {kind.kind} {f'{namespace}/{name}' if namespace else name}"
            if existing is None:
                raise port.ConflictError(asked, "an object of that name existed and was deleted meanwhile")
            if label(obj, LABEL_RUN_UID) and not belongs_to_same_run(existing, obj):
                words = f"{kind.kind} {name} exists and does not belong to this run"
                raise TakenError(asked, words, departing=is_departing(existing))
        case CreateSecret(obj=obj, clients=clients):
            # The operator cannot read an existing one. Its name contains a digest of the UID, so it is the run's.
            data = {key: b64encode(content).decode() for key, content in make_secret(clients).items()}
            await kube.create({**obj, "data": data})
        case CopyKeyring():
            # An existing Secret is kept: its name contains a digest of the run's UID, so it is the run's.
            asked = f"copy the key of client.{action.user} from Secret {action.namespace}/{action.secret}"
            content = _keyring_of(await _get(kube, action.secret, action.namespace, asked), action, asked)
            await kube.create({**action.obj, "data": {KEYRING_FILE: b64encode(content.encode()).decode()}})
        case CheckSecret():
            asked = f"use Secret {action.namespace}/{action.secret}"
            _check_allowed(await _get(kube, action.secret, action.namespace, asked), asked)
        case Delete(child=child, foreground=foreground):
            kind = Kind(api_version=child.api_version, kind=child.kind)
            await kube.delete(kind, child.name, child.namespace or None, uid=child.uid, foreground=foreground)


def _keyring_of(secret: Object, action: CopyKeyring, asked: str) -> str:
    """Return the keyring file in a Secret, which is dropped before the next request: a user may have filled it."""
    if action.is_keyring:
        _check_allowed(secret, asked)
    # No message quotes the content of the field.
    encoded = (secret.get("data") or {}).get(action.field)
    if not encoded:
        raise KeyringError(asked, f"it has no field {action.field}")
    try:
        text = b64decode(encoded).decode().strip()
    except (Base64Error, UnicodeDecodeError):
        raise KeyringError(asked, f"its field {action.field} is not text") from None
    if action.is_keyring and f"[client.{action.user}]" not in text:
        words = f"its field {action.field} is not a keyring file with a section [client.{action.user}]"
        raise KeyringError(asked, words)
    return f"{text}\n" if action.is_keyring else keyring(action.user, text)


async def _get(kube: Kube, name: str, namespace: str, asked: str) -> Object:
    try:
        secret = await kube.get(_SECRET, name, namespace)
    except port.ForbiddenError as error:
        words = f"{error.reason}; bind a Role that may get this Secret to the operator's ServiceAccount"
        raise port.ForbiddenError(asked, words) from error
    if secret is None:
        raise KeyringError(asked, "the Secret does not exist")
    return secret


def _check_allowed(secret: Object, asked: str) -> None:
    """Check the annotation: users who may create runs must not get access to other Secrets."""
    annotations = secret["metadata"].get("annotations") or {}
    if annotations.get(ALLOW_BENCHMARKS) != "true":
        raise KeyringRefusedError(asked, f'it has no annotation {ALLOW_BENCHMARKS}: "true"')
