"""The messages, version 2. All JSON; see docs/protocol.md for who sends what when."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from plimsoll.api.model import Model
from plimsoll.api.run import Precondition
from plimsoll.api.state import LiveRate, TrialKey
from plimsoll.measure.sample import ClientDocument, Clock

PROTOCOL_VERSION = 2
SERVER_NAME = "conductor.plimsoll.dev"
"""The name in the conductor's certificate: agents verify it whatever address they connect to."""

MAX_DOCUMENT_BYTES = 16 * 2**20
"""A larger post is refused. Three operations over a day, the most that there is, make about 9 MiB."""


class AgentState(StrEnum):
    """What an agent answers to an order."""

    IDLE = "Idle"
    PREPARING = "Preparing"
    PREPARED = "Prepared"
    STAGING = "Staging"
    STAGED = "Staged"
    ARMED = "Armed"
    RUNNING = "Running"
    LATE = "Late"
    FAILED = "Failed"
    LEAVING = "Leaving"


class Registration(Model):
    """An agent introduces itself.

    Attributes:
        instance: random, new for every agent process.
        attempt: number of processes started for this client before this one.
        prepared_bytes: size of the data set this very process has prepared; 0 if it has none yet.
        facts: kernel, processors, tool versions, ... for the result's environment.

    """

    protocol: int
    client: Annotated[int, Field(ge=0)]
    instance: str
    attempt: int = 0
    node: str
    prepared_bytes: int = 0
    facts: dict[str, JsonValue] = Field(default_factory=dict)


class Registered(Model):
    """The conductor's answer to a registration.

    Attributes:
        live_seconds: how often an agent that measures says what its tool does.

    """

    epoch: str
    hold_seconds: float
    silence_seconds: float
    live_seconds: float = Field(gt=0)


class ClockReading(Model):
    """The conductor's clock when a probe came in and when its answer left; Unix nanoseconds."""

    received_at: int
    sent_at: int


class Wait(Model):
    """Do nothing; stop whatever runs."""

    kind: Literal["Wait"] = "Wait"


class Prepare(Model):
    """Discard, prefill and overwrite the data set.

    Attributes:
        precondition: random overwriting after the prefill; absent if there is to be none.

    """

    kind: Literal["Prepare"] = "Prepare"
    discard: bool
    prefill: bool
    precondition: Precondition | None = None
    fill_percent: int
    seed: int


class Stage(Model):
    """Do what a trial needs before it can be armed: write what is to be read. Takes as long as it takes."""

    kind: Literal["Stage"] = "Stage"
    trial: TrialKey
    tool: str
    parameters: dict[str, JsonValue]
    ramp_seconds: int
    runtime_seconds: int
    seed: int


class Arm(Model):
    """Get ready to run a tool at T0, and say so. Nothing may touch the target before `Go`."""

    kind: Literal["Arm"] = "Arm"
    trial: TrialKey
    tool: str
    parameters: dict[str, JsonValue]
    ramp_seconds: int
    runtime_seconds: int
    seed: int
    t0_nanoseconds: int


class Go(Model):
    """Everybody is armed: run at T0."""

    kind: Literal["Go"] = "Go"
    trial: TrialKey


class Leave(Model):
    """The run is over: exit."""

    kind: Literal["Leave"] = "Leave"


Order = Annotated[Wait | Prepare | Stage | Arm | Go | Leave, Field(discriminator="kind")]


class Ordered(Model):
    """The order that a client is under. `sequence` grows with every change."""

    epoch: str
    sequence: int
    order: Order


class Report(Model):
    """An agent says where it is with the order of that sequence.

    Attributes:
        rates: what its tool says while it runs; empty if it says nothing.

    """

    epoch: str
    client: int
    instance: str
    sequence: int
    state: AgentState
    message: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    clock: Clock | None = None
    rates: tuple[LiveRate, ...] = ()


class ResultPost(Model):
    """A client's document for a trial. Posted until acknowledged; posting twice changes nothing."""

    epoch: str
    client: int
    instance: str
    trial: TrialKey
    document: ClientDocument


class Acknowledged(Model):
    """The post arrived. `kept` is false if it belongs to a trial that is over, or was there already."""

    kept: bool


class Refusal(Model):
    """Why a request was refused, for people; the code is for the agent."""

    code: Literal["BadToken", "BadProtocol", "BadRequest", "UnknownClient", "Superseded", "StaleEpoch", "TooLarge"]
    message: str
