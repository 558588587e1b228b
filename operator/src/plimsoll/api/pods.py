"""What a run sets for its pods, with the fields of Kubernetes' pods."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from plimsoll.api.model import Integer, Model, Rule, ServerOnly
from plimsoll.api.names import GROUP
from plimsoll.api.storage import SecretReference

LabelValue = Annotated[str, ServerOnly(max_length=63)]
_AnnotationValue = Annotated[str, ServerOnly(max_length=4096)]
NodeLabels = Annotated[Mapping[str, LabelValue], ServerOnly(max_length=32)]

_RESERVED_LABELS = (f"{GROUP}/", "app.kubernetes.io/", "batch.kubernetes.io/")
_RESERVED_ANNOTATIONS = (f"{GROUP}/", "container.apparmor.security.beta.kubernetes.io/")
_JOB_LABELS = ("controller-uid", "job-name")  # older labels by which the Job controller selects pods
ResourceQuantity = Annotated[
    str,
    ServerOnly(int_or_string=True, max_length=32, pattern=r"^[0-9]{1,18}(\.[0-9]{1,9})?([KMGTPE]i|[mkMGTPE])?$"),
]
_Resources = Annotated[Mapping[str, ResourceQuantity], ServerOnly(max_length=16)]


class ResourceRequirements(Model):
    """Requests and limits of a container."""

    requests: _Resources | None = None
    """Resources that a node must have available for the container."""
    limits: _Resources | None = None
    """Maximum resources of the container."""


Resources = Annotated[Mapping[str, JsonValue], ServerOnly(shape=ResourceRequirements)]


class Toleration(Model):
    """A toleration, as in a pod."""

    key: Annotated[str, Field(max_length=316)] | None = None
    """Key of the taint; every key if absent, which requires the operator Exists."""
    operator: Literal["Exists", "Equal"] | None = None
    """Exists for any value of the taint, Equal for the given one. Equal if absent."""
    value: Annotated[str, Field(max_length=63)] | None = None
    """Value of the taint, with the operator Equal."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; every effect if absent."""
    toleration_seconds: Annotated[int, Field(ge=0, le=10 * 365 * 24 * 3600)] | None = None
    """How long NoExecute is tolerated; forever if absent."""


class NodeRequirement(Model):
    """A condition on a label of nodes, as in a pod's node affinity."""

    key: Annotated[str, Field(max_length=317)]
    """Name of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the label is compared with the values."""
    values: Annotated[tuple[Annotated[str, Field(max_length=63)], ...], Field(max_length=64)] = ()
    """Values to compare with."""


class NodeSelectorTerm(Model):
    """Conditions on labels of nodes, all of which must hold."""

    match_expressions: Annotated[tuple[NodeRequirement, ...], Field(min_length=1, max_length=16)]
    """The conditions."""


class NodeSelector(Model):
    """Alternatives, at least one of which must hold."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Field(min_length=1, max_length=16)]
    """The alternatives."""


class NodePreference(Model):
    """A preference for nodes."""

    weight: Annotated[Integer, Field(ge=1, le=100)]
    """Its weight among the preferences."""
    preference: NodeSelectorTerm
    """The nodes."""


class NodeAffinity(Model):
    """Node affinity, as in a pod."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    """The nodes on which a pod may run."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[NodePreference, ...], Field(max_length=16)
    ] = ()
    """The nodes on which it runs if they have room."""


class Affinity(Model):
    """The affinity of pods to nodes.

    Affinity between pods is not supported, because it would make an even spread of clients impossible:
    spec.clients.spread and spec.servers.placement decide how pods are placed relative to each other.
    """

    node_affinity: NodeAffinity | None = None
    """Node affinity, as in a pod."""


class ProxyVariable(Model):
    """An environment variable that names a proxy."""

    name: Literal["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"]
    """Name of the variable."""
    value: Annotated[str, Field(max_length=4096)]
    """Its value."""


class PodTemplate(Model):
    """Settings of the pods of clients, servers and conductor. The administrator may set defaults in the chart."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.labels) || self.labels.all(name, "
            + " && ".join(f"!name.startsWith('{prefix}')" for prefix in _RESERVED_LABELS)
            + f" && !(name in {list(_JOB_LABELS)}))",
            holds=lambda it: not any(name.startswith(_RESERVED_LABELS) or name in _JOB_LABELS for name in it.labels),
            message=f"must set neither {', '.join(_JOB_LABELS)} nor labels below {', '.join(_RESERVED_LABELS)}, by "
            "which Plimsoll and the Job controller find pods; remove them",
            field_path=".labels",
        ),
        Rule(
            rule="!has(self.annotations) || self.annotations.all(name, "
            + " && ".join(f"!name.startsWith('{prefix}')" for prefix in _RESERVED_ANNOTATIONS)
            + ")",
            holds=lambda template: not any(name.startswith(_RESERVED_ANNOTATIONS) for name in template.annotations),
            message=f"must not set annotations below {' and '.join(_RESERVED_ANNOTATIONS)}; remove them",
            field_path=".annotations",
        ),
    )

    labels: Annotated[Mapping[str, LabelValue], ServerOnly(max_length=32)] = Field(default_factory=dict)
    """Further labels of the pods. `sidecar.istio.io/inject` is "false" unless it is set here."""
    annotations: Annotated[Mapping[str, _AnnotationValue], ServerOnly(max_length=32)] = Field(default_factory=dict)
    """Further annotations of the pods, such as `k8s.v1.cni.cncf.io/networks` for Multus. `linkerd.io/inject` is
    disabled unless it is set here."""
    tolerations: Annotated[
        tuple[Mapping[str, JsonValue], ...], ServerOnly(shape=tuple[Toleration, ...], max_length=32)
    ] = ()
    """Taints that the pods tolerate, as in a pod."""
    affinity: Affinity | None = None
    """Nodes on which the pods may run, in addition to the node selectors of clients, servers and conductor."""
    priority_class_name: Annotated[str, ServerOnly(max_length=253)] | None = None
    """PriorityClass of the pods; the cluster's default if absent."""
    runtime_class_name: Annotated[str, ServerOnly(max_length=253)] | None = None
    """RuntimeClass of the pods; the cluster's default if absent. One with a virtual machine is measured with it."""
    image_pull_secrets: Annotated[tuple[SecretReference, ...], ServerOnly(max_length=16)] = ()
    """Secrets in the namespace of the run for pulling the image."""
    env: Annotated[tuple[ProxyVariable, ...], ServerOnly(max_length=6, list_keys=("name",))] = ()
    """Proxy variables, where an admission policy requires them. Plimsoll's own programs ignore them."""
