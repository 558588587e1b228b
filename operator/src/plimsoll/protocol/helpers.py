"""The messages to the helpers, which run kube-burner and drop caches; docs/reference/protocol.md describes them."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.names import DNS_LABEL_PATTERN, GROUP
from plimsoll.api.quantity import format_quantity
from plimsoll.api.surroundings import NodeCaches, OsdCaches
from plimsoll.tools.kube_burner import KubeBurnerParameters

# The audiences of the client's and of the conductor's token: neither the API server nor another program accepts them.
BURNER_AUDIENCE = "plimsoll-kube-burner"
CACHES_AUDIENCE = "plimsoll-caches"

PORT = 8080
BURN_PATH = "/burn"
DROP_PATH = "/drop"

BEAT_SECONDS = 2.0  # between the empty lines with which kube-burner's helper answers while it works
SILENCE_SECONDS = 30.0  # without such a line, until the client gives up
RETRY_SECONDS = 5.0  # after this time the client asks again whether it is its turn. Namespaces that do so take turns
MAX_BURN_REQUEST_BYTES = 4096
MAX_OUTCOME_BYTES = 64 * 2**20
MAX_TOKEN_CHARACTERS = 4096
MAX_DROP_REQUEST_BYTES = 1024
MAX_ANSWER_BYTES = 64 * 2**10

# Labels of every namespace that kube-burner creates; the value of the first is the namespace of the helper.
LABEL_HELPER = "plimsoll.dev/kube-burner"
LABEL_RUN_UID = f"{GROUP}/run-uid"
LABEL_RUN_NAMESPACE = f"{GROUP}/run-namespace"

NAMESPACE_PREFIX = "plimsoll-burn-"  # names of these namespaces begin with it; the helper may touch no others
# Name of the Secret with the certificate and key of the helper that runs kube-burner, and of the ConfigMap with the
# certificate, which the operator reads. The helper makes both, once, so that running clients survive its restarts.
BURNER_CERTIFICATE = "plimsoll-kube-burner-certificate"


class BurnOrder(Model):
    """The only order that the helper accepts: run kube-burner once, and remove everything that it creates."""

    parameters: KubeBurnerParameters
    # Of the PVCs.
    storage_class: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")]
    run_uid: Annotated[str, Field(max_length=63, pattern=DNS_LABEL_PATTERN)]  # a label of the namespaces


class BurnOutcome(Model):
    """What kube-burner left: its exit code, its output, and the files of its indexer by name."""

    exit_code: int
    stdout: str
    stderr: str
    files: dict[str, str]


class HelperRefusal(Model):
    """Why a helper did not do what was requested."""

    message: str


def helper_url(scheme: Literal["http", "https"], service: str, namespace: str) -> str:
    """Return the URL of a helper's Service; the one that drops caches, on the same node, has no TLS."""
    return f"{scheme}://{service}.{namespace}.svc:{PORT}"


def namespace_base(namespace: str, run_uid: str) -> str:
    """Return the beginning of the names of a run's namespaces, which no run of another tenant's namespace shares."""
    return f"{NAMESPACE_PREFIX}{sha256(f'{namespace}/{run_uid}'.encode()).hexdigest()[:10]}-"


def excess_of(limited: Mapping[str, int], *, max_objects: int, max_qps: int, max_volume_size: int) -> str:
    """Return which of a tool's numbers exceed the administrator's limits; empty if none does."""
    limits = {"objects": ("maxObjects", max_objects), "volumeSize": ("maxVolumeSize", max_volume_size)}
    excesses: list[str] = []
    for name, value in limited.items():
        limit, most = limits.get(name, ("maxQps", max_qps))
        if value > most:
            size, allowed = (format_quantity(each) if name == "volumeSize" else str(each) for each in (value, most))
            excesses.append(f"{name} {size} exceeds the administrator's kubeBurner.{limit} of {allowed}")
    return "; ".join(excesses)


class DropRequest(Model):
    """The only order that a helper accepts: drop the caches of the node."""

    fsid: Annotated[str, Field(max_length=64)] | None = None  # the Ceph cluster whose OSDs do the same, if any


class CacheDrop(Model):
    """The answer: what was dropped."""

    node: NodeCaches
    osds: OsdCaches | None = None  # absent if the request contains no cluster
