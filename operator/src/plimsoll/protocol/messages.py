"""The messages, version 2. All JSON; see docs/protocol.md for who sends what when.

What an agent sends has a bound in every field: it runs on somebody else's machine, next to somebody else's storage.
"""

import json
import math
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from plimsoll.api.model import Model
from plimsoll.api.names import Operation
from plimsoll.api.run import MAX_CLIENTS, Precondition
from plimsoll.api.state import LiveRate, TrialKey
from plimsoll.measure.sample import ClientDocument, Clock

PROTOCOL_VERSION = 2
SERVER_NAME = "conductor.plimsoll.dev"
"""The name in the conductor's certificate: agents verify it whatever address they connect to."""

MAX_DOCUMENT_BYTES = 16 * 2**20
"""A larger post is refused. Three operations over a day, the most that there is, make about 9 MiB."""

MAX_MESSAGE_BYTES = 64 * 2**10
"""Anything else that an agent sends is smaller."""

MAX_REPORT_CHARACTERS = 2000
"""Of a report's message; an agent cuts longer ones."""

MAX_ATTEMPT = 1000
"""Far more processes than a client may lose."""

MAX_CLOCK_ERROR_SECONDS = 10.0
"""Half a round trip; an agent does not wait longer for an answer."""

_MAX_FACTS = 32
_MAX_FACTS_CHARACTERS = 8192
_MAX_IDENTITY = 64
_MAX_NODE = 253


def _bounded_facts(facts: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuse what would make the environment of a result impossible to store."""
    try:
        characters = len(json.dumps(facts, ensure_ascii=False, allow_nan=False))
    except ValueError as error:
        # Python reads and writes NaN and Infinity, but nobody else does: no result with them could be stored.
        raise ValueError("has a number that JSON does not know") from error
    if characters > _MAX_FACTS_CHARACTERS:
        message = f"has {characters} characters of JSON, but at most {_MAX_FACTS_CHARACTERS} are allowed"
        raise ValueError(message)
    return facts


def _bounded_clock(clock: Clock | None) -> Clock | None:
    """Refuse a comparison that no agent waits for: how far T0 lies ahead depends on the longest round trip."""
    if clock is not None and not (math.isfinite(clock.offset) and 0 <= clock.error <= MAX_CLOCK_ERROR_SECONDS):
        message = f"must have a finite offset and an error from 0 to {MAX_CLOCK_ERROR_SECONDS:g} s"
        raise ValueError(message)
    return clock


ClientNumber = Annotated[int, Field(ge=0, lt=MAX_CLIENTS)]
Identity = Annotated[str, Field(max_length=_MAX_IDENTITY)]
"""Of a process: an agent's instance, or a conductor's epoch."""

NodeName = Annotated[str, Field(max_length=_MAX_NODE)]
ByteCount = Annotated[int, Field(ge=0, lt=2**63)]
Facts = Annotated[dict[str, JsonValue], Field(max_length=_MAX_FACTS), AfterValidator(_bounded_facts)]


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

    protocol: Annotated[int, Field(ge=0, lt=2**31)]
    client: ClientNumber
    instance: Identity
    attempt: Annotated[int, Field(ge=0, le=MAX_ATTEMPT)] = 0
    node: NodeName
    prepared_bytes: ByteCount = 0
    facts: Facts = Field(default_factory=dict)


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

    epoch: Identity
    client: ClientNumber
    instance: Identity
    sequence: Annotated[int, Field(ge=0, lt=2**63)]
    state: AgentState
    message: Annotated[str, Field(max_length=MAX_REPORT_CHARACTERS)] = ""
    done_bytes: ByteCount = 0
    total_bytes: ByteCount = 0
    clock: Annotated[Clock | None, AfterValidator(_bounded_clock)] = None
    rates: Annotated[tuple[LiveRate, ...], Field(max_length=len(Operation))] = ()


class ResultPost(Model):
    """A client's document for a trial. Posted until acknowledged; posting twice changes nothing."""

    epoch: Identity
    client: ClientNumber
    instance: Identity
    trial: TrialKey
    document: ClientDocument


class Acknowledged(Model):
    """The post arrived. `kept` is false if it belongs to a trial that is over, or was there already."""

    kept: bool


class Refusal(Model):
    """Why a request was refused, for people; the code is for the agent."""

    code: Literal["BadToken", "BadProtocol", "BadRequest", "UnknownClient", "Superseded", "StaleEpoch", "TooLarge"]
    message: str
