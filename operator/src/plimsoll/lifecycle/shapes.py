"""The parts of objects that the operator reads, as msgspec decodes them.

Users may fill objects with thousands of labels, keys or fields, which take ten times the memory of their JSON: only
these fields are decoded. They have Kubernetes' names; those that an object does not have remain absent.
"""

from typing import Any

import msgspec

from plimsoll.api.status import STATE_FILE
from plimsoll.ceph.document import CONF_FILE
from plimsoll.lifecycle import naming
from plimsoll.plan.document import PLAN_FILE

_TEXT: Any = (str, "")
_OPTIONAL: Any = (str | None, None)
_REPORTED: Any = (dict[str, Any], {})  # a status that only controllers and kubelets write


def _shape(name: str, rename: Any = "camel", /, **fields: Any) -> Any:  # noqa: ANN401 - a type at run time
    """Return a struct with these fields: name -> type, and default if the field may be absent."""
    forms = [(field, *form) for field, form in fields.items()]
    return msgspec.defstruct(name, forms, rename=rename, omit_defaults=True)


def _list(item: Any) -> Any:  # noqa: ANN401 - the same
    return list[item] | None, None


_LABELS = {"run_uid": naming.LABEL_RUN_UID, "client": naming.LABEL_CLIENT, "attempt": naming.LABEL_ATTEMPT}
_FILES = {"plan": PLAN_FILE, "state": STATE_FILE, "conf": CONF_FILE}
_labels = _shape("Labels", _LABELS, run_uid=_TEXT, client=_TEXT, attempt=_TEXT)
_files = _shape("Files", _FILES, plan=_OPTIONAL, state=_OPTIONAL, conf=_OPTIONAL)
_owner = _shape("Owner", kind=_TEXT, uid=_TEXT)
_written = _shape("Written", subresource=_TEXT, time=_TEXT)
_identity: dict[str, Any] = {
    "name": (str,),
    "uid": (str,),
    "namespace": _TEXT,
    "resource_version": _TEXT,
    "creation_timestamp": _TEXT,
    "deletion_timestamp": _OPTIONAL,
    "finalizers": _list(str),
    "labels": (_labels | None, None),
    "owner_references": _list(_owner),
}
_metadata = (_shape("Metadata", **_identity),)
_pod_metadata = (_shape("PodMetadata", **_identity, managed_fields=_list(_written)),)
_pod_spec = _shape("PodSpec", node_name=_TEXT)
_result_spec = _shape("ResultSpec", run_uid=_TEXT)

Identity = _shape("Identity", metadata=_metadata)
Result = _shape("Result", metadata=_metadata, spec=(_result_spec | None, None))  # without its numbers
Job = _shape("Job", metadata=_metadata, status=_REPORTED)
Pod = _shape("Pod", metadata=_pod_metadata, spec=(_pod_spec | None, None), status=_REPORTED)
Claim = _shape("Claim", metadata=_metadata, status=_REPORTED)
ConfigMap = _shape("ConfigMap", metadata=_metadata, immutable=(bool | None, None), data=(_files | None, None))
Event = _shape(
    "Event",
    involved_object=(_shape("Involved", kind=_TEXT, uid=_TEXT),),
    type=_OPTIONAL,
    reason=_OPTIONAL,
    message=_OPTIONAL,
    last_timestamp=_OPTIONAL,
    event_time=_OPTIONAL,
    series=(_shape("Series", last_observed_time=_OPTIONAL) | None, None),
)
