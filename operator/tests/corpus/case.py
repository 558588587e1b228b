"""What a case file says: what happened in the field, to which trial, and the verdict that it must get."""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from plimsoll.api.model import Model
from plimsoll.api.names import AbortReason, Operation, Outcome, RunPhase, Verdict
from plimsoll.tools.fio import FioParameters

DIRECTORY = Path(__file__).parent


class Watch(Model):
    """How the conductor watched the Ceph cluster.

    Attributes:
        every: seconds between two looks, from a little before the ramp until a little after the end.
        lag: seconds by which the counters of pools are behind.
        required: the run demands a healthy cluster.
        accepted: health checks that may stand.
        foreign: operations per second on a pool that is not the run's.

    """

    every: float = 5.0
    lag: float = 5.0
    required: bool = True
    accepted: tuple[str, ...] = ()
    foreign: float = 0.0


class Setting(Model):
    """The trial as it was planned, and what its clients do as long as nothing is wrong.

    Attributes:
        iops: of each client.
        nodes: the clients are spread over so many.
        network_bytes_per_second: what the user says the network to a node can carry.
        fio_version: whose recorded output is stretched to the length and rate of this trial.
        tool: another one than fio: every client leaves what `recorded` holds, a golden case of `ceph-18.2`, and has the
            tool's `parameters`. Its `stdout` and `stderr` are the files that a fault may damage.
        ceph: absent if nobody was to watch a cluster.
        osd_classes: device classes of OSDs, as far as they are known.

    """

    clients: int = 3
    nodes: int = 3
    repetitions: int = 1
    ramp_seconds: int = 5
    runtime_seconds: int = 60
    fio: FioParameters = FioParameters(io_depth=16)
    iops: int = 5000
    fio_version: Literal["3.33", "3.39"] = "3.39"
    tool: Literal["fio", "radosBench", "rbdBench", "osdBench"] = "fio"
    parameters: dict[str, Any] = Field(default_factory=dict)
    recorded: str = ""
    network_bytes_per_second: int | None = None
    ceph: Watch | None = None
    osd_classes: dict[int, str] = Field(default_factory=dict)


class Pace(Model):
    """From one second of the measured part to another a client did `factor` times its usual rate; 0 is a stall.

    Attributes:
        every: it did so again and again, from one beginning to the next that many seconds.
        lasts: so long each time.

    """

    seconds: tuple[float, float]
    factor: Annotated[float, Field(ge=0)]
    every: Annotated[float, Field(gt=0)] | None = None
    lasts: float = 0.0

    def stretches(self) -> Iterator[tuple[float, float]]:
        """Yield each beginning and end."""
        start, end = self.seconds
        if self.every is None:
            yield start, end
            return
        for number in range(math.ceil((end - start) / self.every)):
            begin = start + number * self.every
            yield begin, min(end, begin + self.lasts)


class Trouble(Model):
    """What the cluster was like from one second of the measured part to another; negative ones lie before it.

    Attributes:
        status: attributes of `ceph.watch.ClusterStatus` -> value.
        silent: Ceph did not answer, for that reason.
        counted: its pools counted so many times the bytes of the clients.

    """

    seconds: tuple[float, float] = (-1000.0, 1000.0)
    status: dict[str, Any] = Field(default_factory=dict)
    silent: str = ""
    counted: float = 1.0


class Damage(Model):
    """What became of one of the files that fio wrote; in the order of the fields.

    Attributes:
        replace: regular expression -> replacement, of its first match, which there must be.
        set: dotted path in the JSON -> value.
        remove: dotted paths in the JSON.
        earlier_document: it stands in front of the JSON, and is like it but for these values.
        keep: only this part of its characters is left, from 0 to 1.
        noise_lines: so many lines of a hundred characters stand in front of it.
        after: text behind it.
        missing: it was never written.

    """

    replace: dict[str, str] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict)
    remove: tuple[str, ...] = ()
    earlier_document: dict[str, Any] = Field(default_factory=dict)
    keep: float = 1.0
    noise_lines: int = 0
    after: str = ""
    missing: bool = False


class Fault(Model):
    """One thing that went wrong, for some clients (all unless named) in some passes (all unless named).

    To the run of the tool:

    Attributes:
        launched_late: seconds by which the agent started the tool, and so the tool measured, too late.
        measured_late: seconds by which only the measuring began too late, as when the tool lays out a file first.
        measured_seconds: the tool measured for so long.
        paces: when it did more or less than usual; while it does, latency is as long as the queue depth makes it.
        latency_factor: the tool reports so many times the latency that rate and queue depth make.
        submission_microseconds: mean time that submitting an operation took.

    To what the tool left:

        recorded: the output is that of a golden file instead, moved to the time of this trial.
        exit_code: of the tool.
        stderr: what it said there.
        files: name -> what became of it.

    To what the agent sent:

        document: dotted path in the agent's document, by the names on the wire -> value.
        sends_nothing: its document never came.
        sent_as: its document came under another client's number.

    To a repetition as a whole:

        cluster: what the cluster was like.
        aborted: it produced no numbers for that reason.
        replaced: an attempt before it was aborted for that reason.
        not_recorded: it was never done.

    """

    clients: tuple[int, ...] | None = None
    passes: tuple[int, ...] | None = None

    launched_late: float = 0.0
    measured_late: float = 0.0
    measured_seconds: float | None = None
    paces: tuple[Pace, ...] = ()
    latency_factor: float = 1.0
    submission_microseconds: float | None = None

    recorded: str = ""
    exit_code: int | None = None
    stderr: str = ""
    files: dict[str, Damage] = Field(default_factory=dict)

    document: dict[str, Any] = Field(default_factory=dict)
    sends_nothing: bool = False
    sent_as: int | None = None

    cluster: tuple[Trouble, ...] = ()
    aborted: AbortReason | None = None
    replaced: AbortReason | None = None
    not_recorded: bool = False

    def concerns(self, pass_number: int, client: int | None = None) -> bool:
        """Tell whether it happened to a client in a pass; to the pass as a whole without a client."""
        in_pass = self.passes is None or pass_number in self.passes
        return in_pass and (client is None or self.clients is None or client in self.clients)


class Event(Model):
    """What someone does as soon as the conductor is where it says; events happen in their order.

    Attributes:
        at: the conductor's phase; `Released` is `Running` before any tool has begun, `Running` once all have.
        after: not before so many attempts are recorded.
        client: who does it; absent if it is the conductor, or the user.
        does: a client's agent is replaced by another process (`restarts`), is silent for `seconds` (`hangs`), has a
            tool that fails from now on (`fails`) or never comes back (`neverEnds`), or sends its last document again
            (`repeats`), or cannot write what the trial reads (`failsToStage`) or never is done with that
            (`neverStaged`); the conductor is replaced by another process (`restarts`), the user suspends the run
            (`interrupted`), or the cluster gets a problem (`fallsIll`) or gets rid of it (`recovers`).

    """

    at: Literal["Gathering", "Preparing", "Settling", "Gating", "Staging", "Arming", "Released", "Running"]
    after: int = 0
    client: int | None = None
    does: Literal[
        "restarts",
        "hangs",
        "fails",
        "neverEnds",
        "repeats",
        "failsToStage",
        "neverStaged",
        "interrupted",
        "fallsIll",
        "recovers",
    ]
    seconds: float = 0.0


class Session(Model):
    """A whole run of one point by the real conductor among simulated agents.

    Attributes:
        absent: clients whose agents never start.
        cluster: how the Ceph cluster is at the beginning; `none` if the conductor looks at none.
        reads: every trial reads what its clients write before it.
        events: in this order.

    """

    clients: int = 3
    repetitions: int = 1
    absent: tuple[int, ...] = ()
    cluster: Literal["none", "well", "ill"] = "none"
    reads: bool = False
    events: tuple[Event, ...] = ()


class Reason(Model):
    """A finding that must be there.

    Attributes:
        clients: exactly those it names.
        says: parts of its message.

    """

    reason: str
    verdict: Verdict
    clients: tuple[int, ...] = ()
    says: tuple[str, ...] = ()


def worst(reasons: Iterable[Reason]) -> Verdict:
    """Return the verdict that reasons come to together."""
    order = (Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID)
    return max((reason.verdict for reason in reasons), key=order.index, default=Verdict.VALID)


class ExpectedAttempt(Model):
    """One attempt that must be recorded.

    Attributes:
        says: parts of the message with which it was aborted.

    """

    outcome: Outcome
    abort: AbortReason | None = None
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    says: tuple[str, ...] = ()


class Expectation(Model):
    """What must come out.

    Attributes:
        verdict: of every trial that is not listed in `passes`; of a session, of its point, which has none before its
            last trial.
        reasons: exactly those of such a trial.
        passes: number -> the reasons of that trial, if they are others.
        point: the findings of the point beside those of its trials; if only one is planned, NoTrialCounts goes without
            saying if it is Invalid, and Unreplicated if it is not.
        headline: operations per second in the point's summary, to 1 %; without any the summary must be absent.
        others_print: what adding up the clients' own rates gives, to 1 %: the number that must not be the headline.
        slowest_seconds: the greatest latency in the point's summary, to 1 %.
        warnings: parts of the warnings that the trials must keep; there may be no others.
        phase: in which a session ends.
        failure: parts of the message with which it fails.
        attempts: exactly those of a session.

    """

    verdict: Verdict | None = None
    reasons: tuple[Reason, ...] = ()
    passes: dict[int, tuple[Reason, ...]] = Field(default_factory=dict)
    point: tuple[Reason, ...] = ()
    headline: dict[Operation, int] = Field(default_factory=dict)
    others_print: dict[Operation, int] = Field(default_factory=dict)
    slowest_seconds: dict[Operation, float] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    phase: RunPhase | None = None
    failure: tuple[str, ...] = ()
    attempts: tuple[ExpectedAttempt, ...] = ()


class Case(Model):
    """One case file.

    Attributes:
        case: its name; the file's name is made of it.
        what: what happened in the field.
        why: who gets it wrong, or why it matters.

    """

    case: str
    what: str
    why: str = ""
    trial: Setting | None = None
    faults: tuple[Fault, ...] = ()
    session: Session | None = None
    expect: Expectation

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if (self.trial is None) == (self.session is None):
            raise ValueError("has exactly one of trial and session")
        if self.trial and self.expect.verdict is not worst(self.expect.reasons):
            raise ValueError("expects a verdict that does not follow from the reasons that it expects")
        if self.session and self.expect.phase is None:
            raise ValueError("says nothing of how the session ends")
        return self

    @property
    def slug(self) -> str:
        """The name of its file."""
        return re.sub(r"[^a-z0-9]+", "-", self.case.lower()).strip("-")


def paths() -> list[Path]:
    """Return all case files."""
    return sorted(DIRECTORY.glob("*/*.yaml"))


def load(path: Path) -> Case:
    """Read a case file; a key that has no meaning is an error."""
    return Case.model_validate(yaml.safe_load(path.read_text()), by_alias=True, by_name=False)
