"""What came back from the clients of a trial: who answered, and which measurements can be calculated with.

A document comes over the network from a program that ran another program. Its types are known, its numbers are not:
everything behind this module may rely on finite numbers from 0 to 2^63, and on one sample of each operation.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from plimsoll.ceph.watch import ClusterWatch
from plimsoll.measure.plausible import implausible_host, implausible_number
from plimsoll.measure.sample import ClientDocument, Clock, HostUse, Measurement
from plimsoll.measure.series import Share
from plimsoll.measure.window import NANOSECONDS, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFacts:
    """What was planned for a trial.

    Attributes:
        clients: the numbers of the clients that take part.
        runtime_seconds: requested length of the measured part.
        ramp_seconds: warm-up before it.
        t0_nanoseconds: when all clients were to start their tool, Unix time.
        windowed: the tool runs for a time, so that its clients overlap.
        network_bytes_per_second: what the network can carry between the storage and one client's node; None if the
            user does not say.
        cluster: what was seen of the Ceph cluster around the trial; None if nobody was to look at one.
        osd_classes: device class of each OSD, as far as it is known.
        least_runtime_seconds: a shorter runtime means nothing for the tool; 0 if any does.

    """

    clients: tuple[int, ...]
    runtime_seconds: int
    ramp_seconds: int
    t0_nanoseconds: int
    windowed: bool = True
    network_bytes_per_second: int | None = None
    cluster: ClusterWatch | None = None
    osd_classes: Mapping[int, str] = field(default_factory=dict)
    least_runtime_seconds: int = 0

    @property
    def planned_start(self) -> int:
        """When the measured part was to begin, Unix nanoseconds; a tool that does not run for a time has no ramp."""
        return self.t0_nanoseconds + (self.ramp_seconds * NANOSECONDS if self.windowed else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A client's document.

    Attributes:
        implausible: the number in its measurement that cannot be; empty if there is none.
        implausible_host: the same in what was observed of its host.

    """

    client: int
    document: ClientDocument
    implausible: str
    implausible_host: str

    @property
    def clock(self) -> Clock | None:
        """The comparison of clocks, if there was one."""
        clock = self.document.clock
        return clock if clock and math.isfinite(clock.offset) and math.isfinite(clock.error) else None

    @property
    def host(self) -> HostUse | None:
        """What was observed of the host, if every number of it can be."""
        return None if self.implausible_host else self.document.host

    @property
    def measurement(self) -> Measurement | None:
        """What the tool's output said, plausible or not."""
        return self.document.measurement

    @property
    def failed(self) -> bool:
        """Whether the tool itself says that it failed."""
        return bool(self.document.exit_code or (self.measurement and self.measurement.errors))

    @property
    def problem(self) -> str:
        """Why there are no numbers although the tool does not say that it failed; empty if there are."""
        if self.document.parse_error or self.implausible:
            return self.document.parse_error or self.implausible
        if self.failed:
            return ""
        if self.measurement is None:
            return "the tool ended well, yet there is no measurement"
        return "" if self.measurement.runtime else "the tool ended well, yet its measured part has no length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measurement that can be calculated with: its numbers are plausible and its measured part has a length.

    Attributes:
        shares: one for each of its operations.

    """

    answer: Answer
    measurement: Measurement
    interval: Interval
    shares: tuple[Share, ...]

    @property
    def client(self) -> int:
        """The client's number."""
        return self.answer.client

    @property
    def node(self) -> str:
        """Where it ran."""
        return self.answer.document.node


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """All that came back, by ascending number of the client.

    Attributes:
        missing: planned clients without a document.
        unplanned: clients that sent one although they do not take part; it is not looked at.

    """

    answers: tuple[Answer, ...]
    measured: tuple[Measured, ...]
    missing: tuple[int, ...]
    unplanned: tuple[int, ...]


def receive(facts: TrialFacts, documents: Mapping[int, ClientDocument]) -> Intake:
    """Sort the documents into what can be used and what cannot."""
    planned = sorted(set(facts.clients))
    answers = tuple(_answer(client, documents[client]) for client in planned if client in documents)
    return Intake(
        answers=answers,
        measured=tuple(_measured(answers)),
        missing=tuple(client for client in planned if client not in documents),
        unplanned=tuple(sorted(documents.keys() - set(planned))),
    )


def _answer(client: int, document: ClientDocument) -> Answer:
    return Answer(
        client=client,
        document=document,
        implausible=implausible_number(document, document.measurement) if document.measurement is not None else "",
        implausible_host=implausible_host(document.host) if document.host is not None else "",
    )


def _measured(answers: Iterable[Answer]) -> Iterator[Measured]:
    for answer in answers:
        measurement = answer.measurement
        # A tool that failed before it measured anything may give no sensible start; it would blow up the window.
        if measurement is None or answer.implausible or not measurement.runtime:
            continue
        interval = Interval(start=measurement.started_at, end=measurement.started_at + measurement.runtime)
        shares = tuple(Share(sample=sample, interval=interval) for sample in measurement.operations)
        yield Measured(answer=answer, measurement=measurement, interval=interval, shares=shares)
