"""The parts of objects that the operator reads, as msgspec decodes them.

Users may create objects with the labels of a run, and fill theirs with thousands of labels, keys or fields: as JSON an
object has at most a few MiB, as Python objects ten times that. So of an object in a run's namespace only these fields
are decoded. Structs and fields have Kubernetes' names.
"""

from typing import Any

import msgspec

from plimsoll.api.status import STATE_FILE
from plimsoll.ceph.document import CONF_FILE
from plimsoll.lifecycle import naming
from plimsoll.plan.document import PLAN_FILE


class Shape(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A part of an object; other fields are skipped, and absent fields remain absent."""


_LABELS = {"run_uid": naming.LABEL_RUN_UID, "client": naming.LABEL_CLIENT, "attempt": naming.LABEL_ATTEMPT}


class Labels(Shape, rename=_LABELS):
    """The labels that decisions depend on."""

    run_uid: str = ""
    client: str = ""
    attempt: str = ""


class Owner(Shape):
    """An owner reference."""

    kind: str = ""
    uid: str = ""


class Written(Shape):
    """When a manager last wrote which part of an object."""

    subresource: str = ""
    time: str = ""


class Metadata(Shape):
    """What identifies an object and its owners."""

    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None
    labels: Labels | None = None
    owner_references: list[Owner] | None = None


class Identity(Shape):
    """Any object."""

    metadata: Metadata


class ResultSpec(Shape):
    """What identifies a result's run."""

    run_uid: str = ""


class Result(Identity):
    """A result, without its numbers."""

    spec: ResultSpec | None = None


class Job(Identity):
    """A Job. Only controllers write its status."""

    status: dict[str, Any] = {}


class PodMetadata(Metadata):
    """The metadata of a pod, with the times of its changes."""

    managed_fields: list[Written] | None = None


class PodSpec(Shape):
    """Where a pod runs."""

    node_name: str = ""


class Pod(Shape):
    """A pod. Only controllers and kubelets write its status."""

    metadata: PodMetadata
    spec: PodSpec | None = None
    status: dict[str, Any] = {}


class Claim(Identity):
    """A PVC. Only controllers write its status."""

    status: dict[str, Any] = {}


class Files(Shape, rename={"plan": PLAN_FILE, "state": STATE_FILE, "conf": CONF_FILE}):
    """The files of a run's ConfigMaps."""

    plan: str | None = None
    state: str | None = None
    conf: str | None = None


class ConfigMap(Identity):
    """A ConfigMap of a run."""

    immutable: bool | None = None
    data: Files | None = None


class Series(Shape):
    """A repeated event."""

    last_observed_time: str | None = None


class Involved(Shape):
    """The object that an event is about."""

    kind: str = ""
    uid: str = ""


class Event(Shape):
    """An event."""

    involved_object: Involved
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: Series | None = None
