"""The parameters of iperf3."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.model import Integer
from plimsoll.api.names import Operation
from plimsoll.api.quantity import BlockSize, Size, format_quantity
from plimsoll.api.schema import Rule, ServerOnly
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.pairing import Pairing

MAX_OMIT_SECONDS = 60
"""The limit of `--omit` up to iperf3 3.12."""

_NEEDS_BITRATE = "must be set for UDP, which does not find its rate itself; set the bits per second of a stream"
_NO_DATAGRAMS = "applies only to UDP; remove it, or use protocol UDP"
_NO_BITRATE = "applies only to UDP, because TCP finds its rate itself; remove it, or use protocol UDP"
_BITRATE_PATTERN = r"^([1-9][0-9]{1,8}k|[1-9][0-9]{0,5}M|[1-9][0-9]{0,2}G)$"
_USES_UDP = "self.protocol.exists(protocol, protocol == 'UDP')"


class Direction(StrEnum):
    """Whether the loading client sends or receives."""

    SEND = "Send"
    RECEIVE = "Receive"

    @property
    def operation(self) -> Operation:
        """The operation in results."""
        return Operation.WRITE if self is Direction.SEND else Operation.READ


class Protocol(StrEnum):
    """The transport protocol."""

    TCP = "TCP"
    UDP = "UDP"


class Iperf3Parameters(ToolParameters):
    """iperf3 between clients: the rate that TCP or UDP reaches, counted by the receiver.

    Attributes:
        streams: Axis: connections of each pair, at the same time.
        window: Axis: size of a socket's buffers, which limits the TCP window, from 1Ki to 64Mi. Write a number of
            bytes, or whole Ki (at most 9999Ki) or Mi. The kernel chooses if absent, which is best on most networks.
        direction: Axis: Send if the loading client sends, Receive if it receives.
        protocol: Axis: TCP or UDP.
        bitrate: Bits per second of every stream of UDP, from 10k to 999G: a quantity such as 500M. Required for UDP.
        datagram_bytes: Bytes of every datagram of UDP; what fits into a packet of the path if absent.
        pairing: EachPair loads one pair at a time, until every client has loaded every server; OneToAll lets one client
            at a time load all servers; AllAtOnce lets all clients load one server each at the same time.

    """

    axes: ClassVar[frozenset[str]] = frozenset({"streams", "window", "direction", "protocol"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=f"has(self.bitrate) || !{_USES_UDP}",
            message=_NEEDS_BITRATE,
            field_path=".bitrate",
            reason="FieldValueRequired",
        ),
        Rule(rule=f"!has(self.bitrate) || {_USES_UDP}", message=_NO_BITRATE, field_path=".bitrate"),
        Rule(rule=f"!has(self.datagramBytes) || {_USES_UDP}", message=_NO_DATAGRAMS, field_path=".datagramBytes"),
    )
    workload_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=f"!has(self.iperf3) || self.rampSeconds <= {MAX_OMIT_SECONDS}",
            message=f"must be at most {MAX_OMIT_SECONDS} with iperf3, which omits no more; lower it",
            field_path=".rampSeconds",
        ),
    )

    streams: Annotated[Integer, Field(ge=1, le=128, description="Connections of each pair.")] = 1
    window: Annotated[BlockSize, Field(ge=1024, le=64 * 2**20)] | None = Field(
        default=None, description="A number of bytes, or a quantity such as 256Ki or 4Mi."
    )
    direction: Annotated[Direction, Field(description="Send or Receive.")] = Direction.SEND
    protocol: Annotated[Protocol, Field(description="TCP or UDP.")] = Protocol.TCP
    bitrate: Annotated[Size, Field(ge=10_000, le=999 * 10**9), ServerOnly(pattern=_BITRATE_PATTERN)] | None = Field(
        default=None, validate_default=True
    )
    datagram_bytes: Annotated[Integer, Field(ge=16, le=65_507)] | None = None
    pairing: Pairing = Pairing.EACH_PAIR

    @field_validator("bitrate")
    @classmethod
    def _check_udp_has_a_bitrate(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is None and info.data.get("protocol") is Protocol.UDP:
            raise ValueError(_NEEDS_BITRATE)
        return value

    def label(self) -> str:
        """Return a short description: `iperf3 Send TCP x4 window 1Mi`."""
        window = f" window {format_quantity(self.window)}" if self.window else ""
        rate = f" {self.bitrate} bit/s each" if self.protocol is Protocol.UDP else ""
        return f"iperf3 {self.direction} {self.protocol} x{self.streams}{window}{rate}"
