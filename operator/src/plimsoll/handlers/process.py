"""The operator's process: settings, credentials, connections, probes."""

import logging
import os
import time
from typing import Annotated, Any

import kopf
from pydantic import StringConstraints, TypeAdapter, ValidationError

from plimsoll.api.names import GROUP
from plimsoll.handlers.context import Context
from plimsoll.kube.client import AioKube
from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, MANAGED_BY
from plimsoll.lifecycle.settings import Settings

_NAMESPACE = "plimsoll-system"
_ROOK_CLUSTERS = "PLIMSOLL_ROOK_CLUSTERS"

_ClusterName = Annotated[str, StringConstraints(pattern=r"^[-a-z0-9]+/[-a-z0-9]+$")]
_RookClusters = TypeAdapter(dict[_ClusterName, tuple[str, ...]])

_OURS = f"{LABEL_MANAGED_BY}={MANAGED_BY}"


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Set what kopf does, and open the connection to the API."""
    _configure_watches(settings)
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 30
    settings.networking.enforce_retry_after = True
    settings.persistence.finalizer = f"{GROUP}/teardown"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP, key="last-handled", v1=False)
    settings.peering.standalone = True
    settings.posting.loggers = False
    settings.posting.level = logging.INFO
    settings.posting.reporting_component = MANAGED_BY
    settings.posting.reporting_instance = os.environ.get("POD_NAME", "local")
    settings.execution.max_workers = 4
    settings.process.ultimate_exiting_timeout = 60
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    # One line for every event of every pod would hide what matters; transitions are posted as events of the run.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    logging.getLogger("kopf.activities.probe").setLevel(logging.WARNING)
    memo.connection = AioKube()
    memo.context = Context(kube=await memo.connection.__aenter__(), settings=settings_of(dict(os.environ)))


@kopf.on.login(retries=5)
async def login(**kwargs: Any) -> kopf.ConnectionInfo | None:  # noqa: ANN401 - kopf's
    """Log in as the pod's ServiceAccount, or as KUBECONFIG says."""
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


@kopf.on.cleanup()
async def close(memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401 - kopf's
    """Close the connection to the API."""
    if "connection" in memo:
        await memo.connection.__aexit__(None, None, None)


@kopf.on.probe(id="now")
async def probe(**_: Any) -> float:  # noqa: ANN401 - kopf's
    """Answer at all: a blocked loop does not."""
    return time.time()


def settings_of(environment: dict[str, str]) -> Settings:
    """Return the operator's configuration from its environment.

    Raises:
        kopf.PermanentError: if PLIMSOLL_RUNNER_IMAGE is not set, or another variable cannot be read.

    """
    image = environment.get("PLIMSOLL_RUNNER_IMAGE", "")
    if not image:
        message = "PLIMSOLL_RUNNER_IMAGE is not set: name the image of conductor and agents"
        raise kopf.PermanentError(message)
    return Settings(
        runner_image=image,
        namespace=environment.get("POD_NAMESPACE") or _NAMESPACE,
        rook_clusters=_rook_clusters(environment.get(_ROOK_CLUSTERS, "")),
        osd_bench=_switch(environment, "PLIMSOLL_OSD_BENCH"),
        image_pull_policy=environment.get("PLIMSOLL_IMAGE_PULL_POLICY", "IfNotPresent"),
    )


def _rook_clusters(text: str) -> dict[str, tuple[str, ...]]:
    """Return which namespaces may use which Rook cluster; nobody may use any if nothing is said."""
    if not text.strip():
        return {}
    try:
        allowed = _RookClusters.validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        place = "".join(f"[{part!r}]" for part in problem["loc"])
        message = (
            f"{_ROOK_CLUSTERS}{place}: {problem['msg']}; write JSON as "
            '{"rook-ceph/rook-ceph": ["bench"]}: namespace/name of a CephCluster, and the namespaces whose runs may '
            'use it, or "*" for all'
        )
        raise kopf.PermanentError(message) from error
    return dict(allowed)


def _switch(environment: dict[str, str], name: str) -> bool:
    text = environment.get(name, "").strip().lower()
    if text not in {"", "false", "true"}:
        message = f"{name} is {environment[name]!r}: write true or false"
        raise kopf.PermanentError(message)
    return text == "true"


def _configure_watches(settings: kopf.OperatorSettings) -> None:
    """Bound every watch in time, and have the API server select what is ours: a cluster has many other pods."""
    settings.watching.connect_timeout = 10
    settings.watching.server_timeout = 10 * 60
    settings.watching.client_timeout = 11 * 60
    settings.watching.reconnect_backoff = 1.0
    settings.watching.chunk_size = 500
    for resource in (
        ("batch", "v1", "jobs"),
        ("", "v1", "pods"),
        ("", "v1", "configmaps"),
        ("", "v1", "persistentvolumeclaims"),
    ):
        settings.watching.label_selectors[resource] = _OURS
