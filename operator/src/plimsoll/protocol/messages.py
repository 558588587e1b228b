"""The messages, version 3. All JSON; docs/reference/protocol.md describes who sends what and when.

Every field that an agent sends is bounded: agents run on machines that the conductor does not trust.
"""

import json
import math
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, field_validator

from plimsoll.api.json_reader import printable_text
from plimsoll.api.model import Model
from plimsoll.api.names import Operation
from plimsoll.api.run import MAX_CLIENTS, MAX_SERVERS
from plimsoll.api.status import LiveRate, TrialKey
from plimsoll.api.storage import RANDOM_DATA, DataContent, Precondition
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.helpers import MAX_TOKEN_CHARACTERS, CacheDrop
from plimsoll.tools.cast import MAX_ROUNDS

PROTOCOL_VERSION = 3
SERVER_NAME = "conductor.plimsoll.dev"  # in the conductor's certificate, whatever address agents connect to
MAX_DOCUMENT_BYTES = 16 * 2**20  # of a result's post; the largest, three operations over a day, has about 9 MiB
# Parts of a result's post: a parsed one takes up to 60 bytes, and 400 if it is a mapping or an unknown field
MAX_DOCUMENT_ENTRIES = 2**20  # three operations over a day have 520,000
MAX_DOCUMENT_FIELDS = 2**17  # fields, mappings and lists; 16384 OSDs have about 82,000
MAX_MESSAGE_BYTES = 64 * 2**10  # of every other message of an agent
MAX_REPORT_CHARACTERS = 2000  # of a report's message; agents truncate longer ones
MAX_ATTEMPT = 1000  # far above the number of processes that a client may lose
MAX_CLOCK_ERROR_SECONDS = 10.0  # half a round trip; agents do not wait longer for an answer
_MAX_FACTS_CHARACTERS = 8192

ClientNumber = Annotated[int, Field(ge=0, lt=MAX_CLIENTS + MAX_SERVERS)]
Identity = Annotated[str, Field(max_length=64)]  # identity of a process: an agent's instance or a conductor's epoch
ByteCount = Annotated[int, Field(ge=0, lt=2**63)]


class AgentState(StrEnum):
    """The state of an agent's work on its order."""

    IDLE = "Idle"
    PREPARING = "Preparing"
    PREPARED = "Prepared"
    STAGING = "Staging"
    STAGED = "Staged"
    SERVING = "Serving"
    DROPPED = "Dropped"
    ARMED = "Armed"
    RUNNING = "Running"
    LATE = "Late"
    FAILED = "Failed"
    LEAVING = "Leaving"


class Registration(Model):
    """The registration of an agent process."""

    protocol: Annotated[int, Field(ge=0, lt=2**31)]
    client: ClientNumber
    instance: Identity  # random, one per agent process
    attempt: Annotated[int, Field(ge=0, le=MAX_ATTEMPT)] = 0  # number of earlier processes of this client
    node: Annotated[str, Field(max_length=253), AfterValidator(printable_text)]
    prepared_bytes: ByteCount = 0  # size of the data set that this process has prepared; 0 if it has not
    data_set_used: bool = False  # whether a tool has worked since then
    # Kernel, processors, tool versions, ... for the result's environment
    facts: dict[str, JsonValue] = Field(default_factory=dict, max_length=32)

    @field_validator("facts")
    @classmethod
    def _check_facts(cls, facts: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Reject facts that could not be stored in a result's environment."""
        try:
            characters = len(json.dumps(facts, ensure_ascii=False, allow_nan=False))
        except ValueError as error:
            # Python's JSON has NaN and Infinity; the API server's does not.
            raise ValueError("contains a number that is not valid JSON") from error
        if characters > _MAX_FACTS_CHARACTERS:
            raise ValueError(f"has {characters} characters of JSON, but at most {_MAX_FACTS_CHARACTERS} are allowed")
        return {printable_text(name): _printable(value) for name, value in facts.items()}


def _printable(value: JsonValue) -> JsonValue:
    """Return a fact without characters that a terminal may obey: `kubectl` prints results as they are."""
    if isinstance(value, list):
        return [_printable(each) for each in value]
    if isinstance(value, dict):
        return {printable_text(name): _printable(each) for name, each in value.items()}
    return printable_text(value) if isinstance(value, str) else value


class Registered(Model):
    """The conductor's answer to a registration."""

    epoch: str
    hold_seconds: float
    silence_seconds: float
    live_seconds: float = Field(gt=0)  # interval at which an agent reports its tool's rates


class ClockReading(Model):
    """The conductor's clock when a probe arrived and when its answer left; Unix nanoseconds."""

    received_at: int
    sent_at: int


class WaitOrder(Model):
    """Stop running processes and wait."""

    kind: Literal["Wait"] = "Wait"


class PrepareOrder(Model):
    """Discard, prefill and overwrite the data set."""

    kind: Literal["Prepare"] = "Prepare"
    discard: bool
    must_discard: bool = False  # whether to fail if the storage does not support discard
    prefill: bool
    precondition: Precondition | None = None  # random overwrite after the prefill, if any
    content: DataContent = RANDOM_DATA  # of what is written
    fill_percent: int
    seed: int


class ToolOrder(Model):
    """The fields of every order that runs a step of a tool."""

    trial: TrialKey
    round_number: int = 0  # round of the trial, from 0
    tool: str
    parameters: dict[str, JsonValue]
    ramp_seconds: int
    runtime_seconds: int
    seed: int
    peers: dict[int, str] = Field(default_factory=dict)  # addresses of those that serve this client, or that it serves
    data_of: ClientNumber | None = None  # client whose data set the tool reads; absent for the client's own


class StageOrder(ToolOrder):
    """Run the step before arming: write the data that the trial reads. The order has no time limit."""

    kind: Literal["Stage"] = "Stage"


class ServeOrder(ToolOrder):
    """Serve the clients that generate load until the next order; report when they may connect."""

    kind: Literal["Serve"] = "Serve"


class DropCachesOrder(Model):
    """Drop the caches of this node, once for all its clients."""

    kind: Literal["DropCaches"] = "DropCaches"
    trial: TrialKey
    token: Annotated[str, Field(max_length=MAX_TOKEN_CHARACTERS, repr=False)] = ""  # empty without a helper
    fsid: str | None = None  # the Ceph cluster whose OSDs also drop their caches; absent for all clients but one
    limit_seconds: float  # time limit, including the wait for the helper


class ArmOrder(ToolOrder):
    """Get ready to run a tool: start it if it can wait, and report it. No I/O on the target before `Go`."""

    kind: Literal["Arm"] = "Arm"


class GoOrder(Model):
    """All clients are armed: run at T0."""

    kind: Literal["Go"] = "Go"
    trial: TrialKey
    t0_nanoseconds: int  # Unix time


class LeaveOrder(Model):
    """The run is over: exit."""

    kind: Literal["Leave"] = "Leave"


Order = Annotated[
    WaitOrder | PrepareOrder | StageOrder | ServeOrder | DropCachesOrder | ArmOrder | GoOrder | LeaveOrder,
    Field(discriminator="kind"),
]


class Ordered(Model):
    """A client's current order. `sequence` increases with every change."""

    epoch: str
    sequence: int
    order: Order


class Report(Model):
    """An agent's progress with the order `sequence`."""

    epoch: Identity
    client: ClientNumber
    instance: Identity
    sequence: Annotated[int, Field(ge=0, lt=2**63)]
    state: AgentState
    message: Annotated[str, Field(max_length=MAX_REPORT_CHARACTERS)] = ""
    done_bytes: ByteCount = 0
    total_bytes: ByteCount = 0
    clock: Clock | None = None
    # The tool's rates while it runs; empty if it prints none
    rates: Annotated[tuple[LiveRate, ...], Field(max_length=len(Operation), fail_fast=True)] = ()
    caches: CacheDrop | None = None  # what was dropped, with the state `Dropped`

    @field_validator("clock")
    @classmethod
    def _check_clock(cls, clock: Clock | None) -> Clock | None:
        """Reject a clock error that no agent can measure: the longest round trip determines the lead to T0."""
        if clock is not None and not (math.isfinite(clock.offset) and 0 <= clock.error <= MAX_CLOCK_ERROR_SECONDS):
            raise ValueError(f"must have a finite offset and an error from 0 to {MAX_CLOCK_ERROR_SECONDS:g} s")
        return clock


class ResultPost(Model):
    """A client's document for a round of a trial. Agents post until acknowledged; a second post has no effect."""

    epoch: Identity
    client: ClientNumber
    instance: Identity
    trial: TrialKey
    round_number: Annotated[int, Field(ge=0, lt=MAX_ROUNDS)] = 0
    document: ClientDocument


class Acknowledged(Model):
    """The post arrived. `kept` is false if the trial is over or the document had already arrived."""

    kept: bool


RefusalCode = Literal["BadToken", "BadProtocol", "BadRequest", "UnknownClient", "Superseded", "StaleEpoch", "TooLarge"]


class Refusal(Model):
    """Why a request was refused: `code` for the agent, `message` for people."""

    code: RefusalCode
    message: str


class RefusedError(Exception):
    """The conductor refuses a request."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        self.code: RefusalCode = code
        super().__init__(message)
