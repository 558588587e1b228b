"""What a run sets for its pods, with the fields of Kubernetes' pods."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from plimsoll.api.model import Integer, Model, Rule, ServerOnly
from plimsoll.api.names import GROUP
from plimsoll.api.storage import SecretReference

LabelValue = Annotated[str, Field(description="Value of the label."), ServerOnly(max_length=63)]
NodeLabels = Annotated[Mapping[str, LabelValue], ServerOnly(max_length=32)]
_AnnotationValue = Annotated[str, Field(description="Value of the annotation."), ServerOnly(max_length=4096)]

_RESERVED_LABELS = (f"{GROUP}/", "app.kubernetes.io/", "batch.kubernetes.io/")
_RESERVED_ANNOTATIONS = (f"{GROUP}/", "container.apparmor.security.beta.kubernetes.io/")
_JOB_LABELS = ("controller-uid", "job-name")
"""Labels that the Job controller selects pods by, from before those below `batch.kubernetes.io/`."""

ResourceQuantity = Annotated[
    str,
    Field(description="A quantity of a resource."),
    ServerOnly(int_or_string=True, max_length=32, pattern=r"^[0-9]{1,18}(\.[0-9]{1,9})?([KMGTPE]i|[mkMGTPE])?$"),
]
_Resources = Annotated[Mapping[str, ResourceQuantity], ServerOnly(max_length=16)]


class ResourceRequirements(Model):
    """Requests and limits of a container.

    Attributes:
        requests: Resources that a node must have available for the container.
        limits: Maximum resources of the container.

    """

    requests: _Resources | None = None
    limits: _Resources | None = None


Resources = Annotated[Mapping[str, JsonValue], ServerOnly(shape=ResourceRequirements)]


class Toleration(Model):
    """A toleration, as in a pod.

    Attributes:
        key: Key of the taint; every key if absent, which requires the operator Exists.
        operator: Exists for any value of the taint, Equal for the given one. Equal if absent.
        value: Value of the taint, with the operator Equal.
        effect: Effect of the taint; every effect if absent.
        toleration_seconds: How long NoExecute is tolerated; forever if absent.

    """

    key: Annotated[str, Field(max_length=316)] | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: Annotated[str, Field(max_length=63)] | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Annotated[int, Field(ge=0, le=10 * 365 * 24 * 3600)] | None = None


class NodeRequirement(Model):
    """A condition on a label of nodes, as in a pod's node affinity.

    Attributes:
        key: Name of the label.
        operator: How the label is compared with the values.
        values: Values to compare with.

    """

    key: Annotated[str, Field(max_length=317)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Annotated[
        tuple[Annotated[str, Field(max_length=63, description="A value of the label.")], ...], Field(max_length=64)
    ] = ()


class NodeSelectorTerm(Model):
    """Conditions on labels of nodes, all of which must hold.

    Attributes:
        match_expressions: The conditions.

    """

    match_expressions: Annotated[tuple[NodeRequirement, ...], Field(min_length=1, max_length=16)]


class NodeSelector(Model):
    """Alternatives, at least one of which must hold.

    Attributes:
        node_selector_terms: The alternatives.

    """

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Field(min_length=1, max_length=16)]


class NodePreference(Model):
    """A preference for nodes.

    Attributes:
        weight: Its weight among the preferences.
        preference: The nodes.

    """

    weight: Annotated[Integer, Field(ge=1, le=100)]
    preference: NodeSelectorTerm


class NodeAffinity(Model):
    """Node affinity, as in a pod.

    Attributes:
        required_during_scheduling_ignored_during_execution: The nodes on which a pod may run.
        preferred_during_scheduling_ignored_during_execution: The nodes on which it runs if they have room.

    """

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[NodePreference, ...], Field(max_length=16)
    ] = ()


class Affinity(Model):
    """The affinity of pods to nodes.

    Affinity between pods is not supported, because it would make an even spread of clients impossible:
    spec.clients.spread and spec.servers.placement decide how pods are placed relative to each other.

    Attributes:
        node_affinity: Node affinity, as in a pod.

    """

    node_affinity: NodeAffinity | None = None


class ProxyVariable(Model):
    """An environment variable that names a proxy.

    Attributes:
        name: Name of the variable.
        value: Its value.

    """

    name: Literal["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"]
    value: Annotated[str, Field(max_length=4096)]


class PodTemplate(Model):
    """Common settings of the pods of clients, servers and conductor. The administrator may set defaults in the chart.

    Attributes:
        labels: Further labels of the pods. `sidecar.istio.io/inject` is "false" unless it is set here.
        annotations: Further annotations of the pods, such as `k8s.v1.cni.cncf.io/networks` for Multus.
            `linkerd.io/inject` is disabled unless it is set here.
        tolerations: Taints that the pods tolerate, as in a pod.
        affinity: Nodes on which the pods may run, in addition to the node selectors of clients, servers and conductor.
        priority_class_name: PriorityClass of the pods; the cluster's default if absent.
        runtime_class_name: RuntimeClass of the pods; the cluster's default runtime if absent. A runtime with a virtual
            machine measures the virtual machine too.
        image_pull_secrets: Secrets in the namespace of the run for pulling the image.
        env: Proxy variables, where an admission policy requires them. Plimsoll's own programs connect only inside the
            cluster, and ignore them.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.labels) || self.labels.all(name, "
            + " && ".join(f"!name.startsWith('{prefix}')" for prefix in _RESERVED_LABELS)
            + f" && !(name in {list(_JOB_LABELS)}))",
            holds=lambda template: (
                not any(name.startswith(_RESERVED_LABELS) or name in _JOB_LABELS for name in template.labels)
            ),
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
    annotations: Annotated[Mapping[str, _AnnotationValue], ServerOnly(max_length=32)] = Field(default_factory=dict)
    tolerations: Annotated[
        tuple[Mapping[str, JsonValue], ...], ServerOnly(shape=tuple[Toleration, ...], max_length=32)
    ] = ()
    affinity: Affinity | None = None
    priority_class_name: Annotated[str, ServerOnly(max_length=253)] | None = None
    runtime_class_name: Annotated[str, ServerOnly(max_length=253)] | None = None
    image_pull_secrets: Annotated[tuple[SecretReference, ...], ServerOnly(max_length=16)] = ()
    env: Annotated[tuple[ProxyVariable, ...], ServerOnly(max_length=6, list_keys=("name",))] = ()
