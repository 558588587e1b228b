"""The format of a case file: what happened in the field, to which trial, and the expected verdict."""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from corpus.searched import Searched
from plimsoll.api.line import Ending, ProbeOutcome
from plimsoll.api.model import Model
from plimsoll.api.names import AbortReason, Cause, Operation, Outcome, RunPhase, Verdict
from plimsoll.api.operation import SteadinessState
from plimsoll.api.run import Disturbance
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.registry import TOOLS

DIRECTORY = Path(__file__).parent


class Watch(Model):
    """How the conductor watched the Ceph cluster.

    Attributes:
        every: seconds between two polls, from a little before the ramp until a little after the end.
        lag: seconds by which the pools' counters lag.
        required: the run requires a healthy cluster.
        accepted: accepted health checks.
        foreign: reads per second on a foreign pool, and in addition a tenth as many writes without bytes.
        foreign_writes: writes per second on it, of `foreign_bytes` each.
        foreign_since: second of the measured part in which that pool is created.
        file_system: the run measures a file system with one metadata server.
        owns_file_system: that file system was created for the run.
        sets_options: the run set options of the OSDs.
        data_osds: number of OSDs that may hold the run's data; absent if it is unknown. A write is on three of them.
        osd_memory_bytes: sum of the OSDs' memory targets; absent if it is unknown.
        dropped_caches: the OSDs dropped their caches before the trial.

    """

    every: float = 5.0
    lag: float = 5.0
    required: bool = True
    accepted: tuple[str, ...] = ()
    foreign: float = 0.0
    foreign_writes: float = 0.0
    foreign_bytes: int = 4096
    foreign_since: float = -1000.0
    file_system: bool = False
    owns_file_system: bool = False
    sets_options: bool = False
    data_osds: int | None = 12
    osd_memory_bytes: int | None = None
    dropped_caches: bool = False


class Setting(Model):
    """The trial as planned, and the normal load of its clients.

    Attributes:
        iops: of each client.
        nodes: number of nodes that the clients are spread over.
        network_bytes_per_second: what the network to a node can carry, as the user states.
        fio_version: the version whose recorded output is stretched to the length and rate of this trial.
        tool: another tool than fio: every client leaves `recorded`, a golden case of `ceph-18.2` or of that tool, or
            with kubeBurner the run in `kube-burner-2.7.3`, and has the tool's `parameters`. Its `stdout` and `stderr`
            are among the files that a fault may damage.
        ceph: absent if the run watches no cluster.
        osd_classes: the known device classes of OSDs.
        objective_microseconds: the trial is a probe of a search for the depth at which the 99th percentile is this
            long; absent outside of searches.
        warm_caches: the workload declares that the storage's caches are to answer reads.
        dropped_caches: the nodes of the clients dropped their page caches before the trial.
        servers: number of each client that serves others -> its node.
        disturbance: the OSDs that the trial is to take away for a while.

    """

    clients: int = 3
    nodes: int = 3
    repetitions: int = 1
    ramp_seconds: int = 5
    runtime_seconds: int = 60
    fio: FioParameters = FioParameters(io_depth=16)
    iops: int = 5000
    fio_version: Literal["3.33", "3.39", "3.41"] = "3.39"
    tool: Annotated[str, Field(pattern=f"^({'|'.join(TOOLS)})$")] = "fio"
    parameters: dict[str, Any] = Field(default_factory=dict)
    recorded: str = ""
    network_bytes_per_second: int | None = None
    ceph: Watch | None = None
    osd_classes: dict[int, str] = Field(default_factory=dict)
    objective_microseconds: int | None = None
    warm_caches: bool = False
    dropped_caches: bool = False
    servers: dict[int, str] = Field(default_factory=dict)
    disturbance: Disturbance | None = None


class Pace(Model):
    """From one second of the measured part to another a client had `factor` times its usual rate; 0 is a stall.

    Attributes:
        every: seconds from one beginning to the next, if this repeats.
        lasts: seconds that each repetition lasts.

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
    """The state of the cluster from one second of the measured part to another; negative seconds precede it.

    Attributes:
        status: attributes of `ceph.watch.ClusterStatus` -> value.
        silent: the reason why Ceph did not answer.
        counted: how many times the clients' bytes its pools counted.

    """

    seconds: tuple[float, float] = (-1000.0, 1000.0)
    status: dict[str, Any] = Field(default_factory=dict)
    silent: str = ""
    counted: float = 1.0


class OtherOption(Model):
    """An option that does not have the run's value, in the reading before or after the trial.

    Attributes:
        where: `osd.3`, or the configuration database with whose option it is.
        unread: the reason why options could not be read, instead of a difference.

    """

    reading: Literal["before", "after"]
    where: str = ""
    name: str = ""
    wanted: str = ""
    found: str = ""
    unread: str = ""


class Damage(Model):
    """Changes to one of the files that fio wrote, applied in the order of the fields.

    Attributes:
        replace: regular expression -> replacement of its first match, which must exist.
        set: dotted path in the JSON -> value.
        remove: dotted paths in the JSON.
        earlier_document: values of a document before the JSON that otherwise equals it.
        keep: the part of its characters that remains, from 0 to 1.
        noise_lines: number of lines of a hundred characters before it.
        after: text after it.
        missing: the file was never written.

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
        measured_late: seconds by which only measuring began too late, as when the tool lays out a file first.
        measured_seconds: how long the tool measured.
        paces: when its rate was unusual; latency then follows from rate and queue depth.
        latency_factor: how many times the latency that follows from rate and queue depth the tool reports.
        submission_microseconds: mean time to submit an operation.

    To the tool's output:

        recorded: a golden file that replaces the output, moved to the time of this trial.
        exit_code: of the tool.
        stderr: of the tool.
        files: name -> damage.

    To the agent's document:

        document: dotted path in the agent's document, by the names on the wire -> value.
        sends_nothing: the document never arrived.
        sent_as: the document arrived under another client's number.

    To a repetition as a whole:

        cluster: the state of the cluster.
        options: differing options of the cluster.
        aborted: the reason why it produced no numbers.
        replaced: the reason why a previous attempt was aborted.
        replaced_after_start: whether the clients had begun to generate load in that attempt.
        not_recorded: it never ran.

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
    options: tuple[OtherOption, ...] = ()
    aborted: AbortReason | None = None
    replaced: AbortReason | None = None
    replaced_after_start: bool | None = None
    not_recorded: bool = False

    def concerns(self, pass_number: int, client: int | None = None) -> bool:
        """Whether it affects a client in a pass; without a client, the pass as a whole."""
        in_pass = self.passes is None or pass_number in self.passes
        return in_pass and (client is None or self.clients is None or client in self.clients)


class Event(Model):
    """An event in a phase of the conductor; events happen in their order.

    Attributes:
        at: the conductor's phase; `Released` is `Running` before any tool has begun, `Running` once all have.
        after: the least number of recorded attempts before it.
        client: the client that it affects; absent for the conductor, the user or the cluster.
        does: a client's agent restarts as another process (`restarts`), is silent for `seconds` (`hangs`), has a tool
            that fails from now on (`fails`) or never ends (`neverEnds`), sends its last document again (`repeats`),
            cannot write the data that the trial reads (`failsToStage`) or never finishes writing it (`neverStaged`),
            needs `seconds` to arm (`armsLate`);
            the conductor restarts as another process (`restarts`), the user suspends the run (`interrupted`), or the
            cluster becomes unhealthy (`fallsIll`) or healthy (`recovers`).

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
        "armsLate",
        "interrupted",
        "fallsIll",
        "recovers",
    ]
    seconds: float = 0.0


class Session(Model):
    """A whole run of one point by the real conductor among simulated agents.

    Attributes:
        absent: clients whose agents never start.
        cluster: the initial state of the Ceph cluster; `none` if the conductor watches none.
        reads: every trial reads data that its clients write before it.
        events: in this order.

    """

    clients: int = 3
    repetitions: int = 1
    absent: tuple[int, ...] = ()
    cluster: Literal["none", "well", "ill"] = "none"
    reads: bool = False
    events: tuple[Event, ...] = ()


class Reason(Model):
    """An expected finding.

    Attributes:
        clients: exactly the clients that it names.
        says: parts of its message.

    """

    reason: str
    verdict: Verdict
    clients: tuple[int, ...] = ()
    says: tuple[str, ...] = ()


def worst(reasons: Iterable[Reason]) -> Verdict:
    """Return the worst verdict of reasons."""
    order = (Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID)
    return max((reason.verdict for reason in reasons), key=order.index, default=Verdict.VALID)


class ExpectedAttempt(Model):
    """An attempt that must be recorded.

    Attributes:
        says: parts of the message of its abort.

    """

    outcome: Outcome
    abort: AbortReason | None = None
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    says: tuple[str, ...] = ()


class Expectation(Model):
    """The expected outcome.

    Attributes:
        verdict: of every trial that is not listed in `passes`; for a session, of its point, which has none before its
            last trial.
        reasons: exactly the reasons of such a trial.
        passes: number -> the reasons of that trial, if they differ.
        point: the findings of the point in addition to those of its trials; for a single trial, NoTrialCounts is
            implied if it is Invalid, and Unreplicated otherwise.
        headline: operations per second in the point's summary, to 1 %; if empty, there must be no summary.
        others_print: the sum of the clients' own rates, to 1 %: the number that must not be the headline.
        slowest_seconds: the greatest latency in the point's summary, to 1 %.
        warnings: parts of all warnings of the trials.
        steadiness: of the rate of every trial; absent if the case is not about it.
        outcome: of every trial that is a probe of a search.
        phase: in which a session ends.
        failure: parts of the message of a failed session.
        attempts: exactly the attempts of a session.
        ending: of a search.
        line: load in the interval of a search; absent if the storage has no line.
        spoiled_by: what spoiled the trials that do not count; absent if the case is not about it.

    """

    verdict: Verdict | None = None
    reasons: tuple[Reason, ...] = ()
    passes: dict[int, tuple[Reason, ...]] = Field(default_factory=dict)
    point: tuple[Reason, ...] = ()
    headline: dict[Operation, float] = Field(default_factory=dict)
    others_print: dict[Operation, int] = Field(default_factory=dict)
    slowest_seconds: dict[Operation, float] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    steadiness: SteadinessState | None = None
    outcome: ProbeOutcome | None = None
    phase: RunPhase | None = None
    failure: tuple[str, ...] = ()
    attempts: tuple[ExpectedAttempt, ...] = ()
    ending: Ending | None = None
    line: float | None = None
    spoiled_by: Cause | None = None


class Case(Model):
    """One case file.

    Attributes:
        case: its name; the file's name derives from it.
        what: what happened in the field.
        why: which tool gets it wrong, or why it matters.

    """

    case: str
    what: str
    why: str = ""
    trial: Setting | None = None
    faults: tuple[Fault, ...] = ()
    session: Session | None = None
    search: Searched | None = None
    expect: Expectation

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if sum(kind is not None for kind in (self.trial, self.session, self.search)) != 1:
            raise ValueError("needs exactly one of trial, session and search")
        if self.trial and self.expect.verdict is not worst(self.expect.reasons):
            raise ValueError("the expected verdict does not follow from the expected reasons")
        if self.session and self.expect.phase is None:
            raise ValueError("needs the phase in which the session ends")
        return self

    @property
    def slug(self) -> str:
        """The name of its file."""
        return re.sub(r"[^a-z0-9]+", "-", self.case.lower()).strip("-")


def paths() -> list[Path]:
    """Return all case files."""
    return sorted(DIRECTORY.glob("*/*.yaml"))


def load(path: Path) -> Case:
    """Read a case file, with the parser in C; an unknown key is an error."""
    return Case.model_validate(yaml.load(path.read_text(), yaml.CSafeLoader), by_alias=True, by_name=False)
