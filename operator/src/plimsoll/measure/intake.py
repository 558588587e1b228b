"""The documents of a trial's clients: which clients answered, and which measurements are usable.

A document comes over the network from a program that ran another program. Its types are validated, its numbers are not:
all code after this module can rely on finite numbers from 0 to 2^63, and on one sample per operation.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from typing import Protocol

from plimsoll.api.line import LineSearch, Objective, Vary
from plimsoll.api.names import Operation
from plimsoll.api.result import ToolUse
from plimsoll.api.run import Disturbance
from plimsoll.ceph.watch import ClusterWatch, Outage
from plimsoll.measure.histogram import Histogram, HistogramError, bin_midpoint
from plimsoll.measure.rates import ALL_QUANTITIES, Quantities
from plimsoll.measure.sample import (
    ClientDocument,
    Clock,
    HostUse,
    LatencySample,
    Measurement,
    implausible_host,
    implausible_number,
)
from plimsoll.measure.text import quote
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share

READS = (Operation.READ, Operation.READ_CHARACTERS, Operation.REWRITE, Operation.SEEK)  # they read data
MAX_ARGUMENTS = 128
MAX_ARGUMENT_CHARACTERS = 512
MAX_VERSIONS = 8
_VERSION_CHARACTERS = 120
_DIGEST_CHARACTERS = 64
_STEPS = 200  # in which the popularity of blocks is integrated, from the hottest to the coldest
_HOTTEST = 1e-12  # the first of these steps, as a part of the data set


class Skew(Protocol):
    """How operations at random places prefer some blocks, which are scattered over the data set."""

    def share(self, part: float, size: int) -> float:
        """Return the share of the operations, 0 to 1, on the hottest part, 0 to 1, of a data set of `size` bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The load that a trial offers: of a search for the line, or the rate that its workload sets."""

    load: float  # operations per second or in flight of all clients together
    search: LineSearch | None = None  # None outside of a search
    at_random: bool = True  # whether operations of a rate are due at random times, independent of those in flight
    depth: int | None = None  # operations that one client can have in flight; None if that is unknown
    # Operation -> its part of all operations, 0 to 1; empty if the tool does not set them.
    shares: Mapping[Operation, float] = field(default_factory=dict)

    @property
    def vary(self) -> Vary:
        """What the load is: a rate outside of a search."""
        return self.search.vary if self.search else Vary.RATE

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives of the search; none outside of one."""
        return self.search.objectives if self.search else ()

    @property
    def is_open_loop(self) -> bool:
        """Whether operations are due however fast the storage answers."""
        return self.vary is Vary.RATE and self.at_random


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFacts:
    """A trial as it was planned."""

    clients: tuple[int, ...]  # the numbers of the clients that take part
    runtime_seconds: int  # requested length of the measured part
    ramp_seconds: int  # warm-up before it
    t0_nanoseconds: int  # planned start of the tools, Unix time
    windowed: bool = True  # the tool runs for a fixed time, so that its clients overlap
    # What the network can carry between the storage and one client's node, as the user states; None if unknown.
    network_bytes_per_second: int | None = None
    cluster: ClusterWatch | None = None  # the polls of the Ceph cluster around the trial; None if the run watches none
    osd_classes: Mapping[int, str] = field(default_factory=dict)  # the known device classes of OSDs
    ends_when_done: bool = False  # the load ends when its work is done, and the runtime only limits it
    new_data_set: bool = False  # the clients' data sets were prepared for this attempt
    least_runtime_seconds: int = 0  # the minimum for meaningful numbers of the tool; 0 if there is none
    quantities: Quantities = ALL_QUANTITIES  # what the tool can report
    nodes: Mapping[int, str] = field(default_factory=dict)  # number of a client, or of one that serves it, -> its node
    measures_network: bool = False  # the tool measures the network, whose limits say nothing against the numbers
    warm_caches: bool = False  # the storage's own caches are meant to answer reads
    dropped_node_caches: bool = False  # the clients' nodes dropped their page caches before the trial
    dropped_osd_caches: bool = False  # the OSDs dropped theirs
    # The tool visits some places again before it has been at all; otherwise it goes through its data in order.
    at_random: bool = False
    skew: Skew | None = None  # of random places; None if all are equally likely
    disturbance: Disturbance | None = None  # the OSDs that the trial takes away; None if it takes none
    offer: Offer | None = None  # the load that the trial offers; None if it does as much as the storage permits

    @property
    def outage(self) -> Outage | None:
        """When OSDs were away; None if they were not."""
        outage = self.cluster.outage if self.cluster else None
        return outage if outage and outage.start and outage.end and not outage.problem else None

    @property
    def search(self) -> LineSearch | None:
        """The search for the line that the trial is a probe of; None for other trials."""
        return self.offer.search if self.offer else None

    @property
    def searches_rate(self) -> bool:
        """Whether a search offers operations at a rate, however fast the storage answers."""
        return self.search is not None and self.search.vary is Vary.RATE

    @property
    def planned_start(self) -> int:
        """Planned start of the measured part, Unix nanoseconds; a tool without a window has no ramp."""
        return self.t0_nanoseconds + (self.ramp_seconds * NANOSECONDS if self.windowed else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAnswer:
    """A client's document."""

    client: int
    document: ClientDocument
    implausible: str  # an impossible number in its measurement; empty if there is none
    implausible_host: str  # an impossible number in the observation of its host

    @property
    def clock(self) -> Clock | None:
        """The comparison of clocks, if there was one."""
        clock = self.document.clock
        return clock if clock and math.isfinite(clock.offset) and math.isfinite(clock.error) else None

    @property
    def host(self) -> HostUse | None:
        """The observation of the host, unless it has an impossible number."""
        return None if self.implausible_host else self.document.host

    @property
    def failed(self) -> bool:
        return bool(self.document.exit_code or (self.document.measurement and self.document.measurement.errors))

    @property
    def problem(self) -> str:
        """Why there are no numbers although the tool reported no failure; empty if there are numbers."""
        measurement, problem = self.document.measurement, self.document.parse_error or self.implausible
        if problem or self.failed or (measurement and measurement.runtime):
            return problem
        lacks = "its measured part has no length" if measurement else "there is no measurement"
        return f"the tool succeeded, but {lacks}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMeasurement:
    """A usable measurement: its numbers are plausible, and its measured part has a length."""

    answer: ClientAnswer
    measurement: Measurement
    interval: Interval
    shares: tuple[Share, ...]  # one for each of its operations

    @property
    def client(self) -> int:
        return self.answer.client

    @property
    def node(self) -> str:
        return self.answer.document.node

    @property
    def data_bytes(self) -> int:
        """The size of the tool's files, or of the data set; 0 if unknown."""
        size = self.measurement.data_bytes
        return self.answer.document.data_set_bytes if size is None else size

    def bytes(self, operation: Operation) -> int:
        return sum(sample.bytes for sample in self.measurement.operations if sample.operation is operation)

    def does(self, operation: Operation) -> bool:
        return any(it.operation is operation and (it.ios or it.bytes) for it in self.measurement.operations)

    @property
    def reads(self) -> bool:
        """Whether it read data, also if it was too fast to be timed."""
        return any(operation in self.measurement.untimed or self.does(operation) for operation in READS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """All answers, by ascending client number."""

    answers: tuple[ClientAnswer, ...]
    measured: tuple[ClientMeasurement, ...]
    missing: tuple[int, ...]  # planned clients without a document


def part_read_again(facts: TrialFacts, measured: Collection[ClientMeasurement]) -> float:
    """Return the part of the bytes, 0 to 1, read or written before since the ramp, at that rate; 1 if unknown."""
    seen_again = total = 0.0
    for item in measured:
        size, moved = item.data_bytes, sum(sample.bytes for sample in item.measurement.operations)
        ramp = facts.ramp_seconds * NANOSECONDS / item.interval.length if facts.windowed else 0.0
        before, after = moved * ramp, moved * (1 + ramp)
        visited = [bytes_visited(x, size, at_random=facts.at_random, skew=facts.skew) for x in (before, after)]
        # A tool with phases reads what its earlier phases wrote.
        has_phases = any(share.is_phase for share in item.shares)
        seen_again += moved - (0.0 if has_phases else visited[1] - visited[0])
        total += moved
    return seen_again / total if total else 1.0


def bytes_read_from(measured: Collection[ClientMeasurement]) -> int | None:
    """Return the size of the data that the clients read from, of all of them; None if none reads, or it is unknown."""
    sizes = [item.data_bytes for item in measured if item.reads]
    return sum(sizes) if sizes and all(sizes) else None


def receive(facts: TrialFacts, documents: Mapping[int, ClientDocument]) -> Intake:
    """Separate usable from unusable documents."""
    answers = tuple(
        ClientAnswer(
            client=client,
            document=document,
            implausible=implausible_number(document, document.measurement) if document.measurement else "",
            implausible_host=implausible_host(document.host) if document.host else "",
        )
        for client, document in sorted(documents.items())
        if client in facts.clients
    )
    missing = tuple(sorted({*facts.clients} - documents.keys()))
    return Intake(answers=answers, measured=tuple(_measured(answers)), missing=missing)


def _measured(answers: Iterable[ClientAnswer]) -> Iterator[ClientMeasurement]:
    for answer in answers:
        measurement = answer.document.measurement
        # A tool that failed before it measured may report any start, which would distort the window.
        if measurement is None or answer.implausible or not measurement.runtime:
            continue
        start = measurement.started_at
        interval = Interval(start=start, end=start + measurement.runtime)
        shares = tuple(
            Share(sample=it, interval=interval if it.runtime is None else Interval(start=start, end=start + it.runtime))
            for it in measurement.operations
        )
        yield ClientMeasurement(answer=answer, measurement=measurement, interval=interval, shares=shares)


def parts_within(measured: Collection[ClientMeasurement], part: Interval) -> tuple[ClientMeasurement, ...]:
    """Return what clients measured in a part of their time; nothing if one has no series, or no latencies over time."""
    try:
        return tuple(_within(item, part) for item in measured)
    except HistogramError:
        return ()


def _within(item: ClientMeasurement, part: Interval) -> ClientMeasurement:
    samples = []
    for share in item.shares:
        sample, amount = share.sample, share.within(part)
        if share.lacks_series:
            raise HistogramError(f"there is no series of {sample.operation} operations")
        histogram = Histogram.merge_texts(share.slices_in(part))
        times = math.fsum(bin_midpoint(index) * count for index, count in histogram.counts.items())
        latency = LatencySample(
            kind=sample.latency.kind,
            count=histogram.total,
            mean_nanoseconds=times / max(1, histogram.total),
            max_nanoseconds=sample.latency.max_nanoseconds,
            histogram=histogram.encode(),
        )
        update = {"ios": round(amount.ios), "bytes": round(amount.bytes), "latency": latency}
        samples.append(sample.model_copy(update=update | {"cells": None, "slices": None}))
    # Submissions that filled the depth are not counted over time: they count as if all were in that part.
    done, whole = (max(1, sum(it.ios for it in each)) for each in (samples, item.measurement.operations))
    full = item.measurement.depth_full_share
    measurement = item.measurement.model_copy(
        update={
            "operations": tuple(samples),
            "runtime": part.length,
            "depth_full_share": None if full is None else min(1.0, full * whole / done),
        }
    )
    shares = tuple(Share(sample=sample, interval=part) for sample in samples)
    return replace(item, measurement=measurement, interval=part, shares=shares)


def tool_use(answers: Iterable[ClientAnswer], measured: Iterable[ClientMeasurement]) -> ToolUse | None:
    """Return the provenance of a trial; None if no client answered."""
    if not (answers := tuple(answers)):
        return None
    first = answers[0]
    # A digest over all clients is one of `sha256sum` output; without a digest of each client there is none.
    lines = [f"{answer.document.raw_sha256}  client-{answer.client}\n" for answer in answers]
    is_complete = all(len(answer.document.raw_sha256) == _DIGEST_CHARACTERS for answer in answers)
    return ToolUse(
        versions=tuple(sorted(clients_by_version(measured)))[:MAX_VERSIONS],
        argv_client=first.client,
        argv=tuple(quote(word, MAX_ARGUMENT_CHARACTERS) for word in first.document.argv[:MAX_ARGUMENTS]),
        raw_sha256=sha256("".join(lines).encode()).hexdigest() if is_complete else None,
    )


def clients_by_version(measured: Iterable[ClientMeasurement]) -> Mapping[str, list[int]]:
    """Return the clients of each version, such as `fio 3.39`, without clients whose version is unknown."""
    clients = defaultdict[str, list[int]](list)
    for item in measured:
        if version := quote(item.measurement.tool_version, _VERSION_CHARACTERS):
            clients[f"{quote(item.measurement.tool, _VERSION_CHARACTERS)} {version}"].append(item.client)
    return clients


def bytes_visited(moved: float, size: int, *, at_random: bool, skew: Skew | None = None) -> float:
    """Return the bytes, of a data set of `size`, that are read or written at least once in `moved` bytes of I/O.

    Of D bytes, those are min(x, D) after x bytes in order, and D (1 - exp(-x/D)) at random places (the occupancy
    problem: Feller, An Introduction to Probability Theory, volume 1, IV.2), with a skew of each group of blocks.
    """
    if not at_random or not size:
        return min(moved, size)
    if skew is None:
        return size * -math.expm1(-moved / size)
    parts = [_HOTTEST ** (1 - step / _STEPS) for step in range(_STEPS + 1)]
    shares = [skew.share(part, size) for part in parts]
    groups = zip(pairwise([0.0, *parts]), pairwise([0.0, *shares]), strict=True)
    widths = [(size * (end - start), more - less) for (start, end), (less, more) in groups]
    return math.fsum(width * -math.expm1(-moved * share / width) for width, share in widths)
