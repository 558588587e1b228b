"""Pod settings of a run, as schemas for the API server.

The models of a run pass these settings on unchanged: Kubernetes checks them when the pods are created.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.schema import ServerOnly

ResourceQuantity = Annotated[
    str,
    Field(description="A quantity of a resource."),
    ServerOnly(int_or_string=True, max_length=32, pattern=r"^[0-9]{1,18}(\.[0-9]{1,9})?([KMGTPE]i|[mkMGTPE])?$"),
]
_Resources = Annotated[Mapping[str, ResourceQuantity], ServerOnly(max_length=16)]

_MAX_TOLERATION_SECONDS = 10 * 365 * 24 * 3600


class ResourceRequirements(Model):
    """Requests and limits of a container.

    Attributes:
        requests: Resources that a node must have available for a client.
        limits: Maximum resources of a client.

    """

    requests: _Resources | None = None
    limits: _Resources | None = None


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
    toleration_seconds: Annotated[int, Field(ge=0, le=_MAX_TOLERATION_SECONDS)] | None = None
