"""`spec.servers`: pods that serve the clients of network tools."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Integer, Model
from plimsoll.api.schema import Rule, ServerOnly

MAX_SERVERS = 64

LabelValue = Annotated[str, Field(description="Value of the label."), ServerOnly(max_length=63)]

_NEEDED = "must be set with placement Selected; write the labels of the nodes, or choose another placement"
_IGNORED = "has no effect without placement Selected; remove it, or set placement to Selected"


class Servers(Model):
    """Pods that serve the clients of network tools such as iperf3, and never generate load themselves.

    Without servers, the clients serve each other. Servers have the image, the resources, the tolerations and the
    priority of clients, and no volumes.

    Attributes:
        placement: Nodes of the servers. StorageNodes runs them on nodes with OSDs of the Rook cluster in
            storage.rook, ClientNodes on nodes with clients of the run, Selected on the nodes of nodeSelector. In each
            case they are spread over these nodes.
        node_selector: Labels that the nodes of servers must have. Required with placement Selected, and only allowed
            with it.
        count: Number of servers. The plan is made before nodes are known, so it cannot depend on their number.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.placement != 'Selected' || has(self.nodeSelector) && self.nodeSelector.size() > 0",
            message=_NEEDED,
            field_path=".nodeSelector",
        ),
        Rule(
            rule="self.placement == 'Selected' || !has(self.nodeSelector) || self.nodeSelector.size() == 0",
            message=_IGNORED,
            field_path=".nodeSelector",
        ),
    )

    placement: Literal["StorageNodes", "ClientNodes", "Selected"]
    node_selector: Annotated[Mapping[str, LabelValue], ServerOnly(max_length=32)] = Field(default_factory=dict)
    count: Annotated[Integer, Field(ge=1, le=MAX_SERVERS)]

    @model_validator(mode="after")
    def _check_node_selector(self) -> Self:
        if (self.placement == "Selected") != bool(self.node_selector):
            remedy = _IGNORED if self.node_selector else _NEEDED
            raise SpecError([Problem(field="nodeSelector", remedy=remedy)])
        return self
