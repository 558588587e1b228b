"""Points on simulated storage, from the tools' output through documents, trials and attempts to the verdict.

All that fio counts and times comes at random from the storage's rate, but document, logs and histograms have the same
operations, and in a closed loop rate times mean latency is the queue depth.
"""

import json
import math
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from random import Random
from statistics import NormalDist
from typing import Any

from corpus.fio_run import histogram_of, latency_fields, recorded
from plimsoll.api.environment import CephDescription, Environment, OsdSettingsDescription, Quantiles
from plimsoll.api.names import AbortReason, Operation
from plimsoll.api.result import ResultStatus
from plimsoll.api.status import TrialKey
from plimsoll.ceph.watch import ClusterSample, ClusterStatus, ClusterWatch, Placement, PoolCounters
from plimsoll.conductor.attempt import Attempt, Fault, Moment, Timings
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.roster import Roster, environment, timestamp
from plimsoll.measure.histogram import BIN_COUNT, bin_index, bin_midpoint
from plimsoll.measure.rates import grouped
from plimsoll.measure.sample import ClientDocument, DeviceUse, HostUse, Measurement
from plimsoll.measure.trial import measure_round, trial_of_rounds
from plimsoll.plan.document import Plan
from plimsoll.protocol.messages import PROTOCOL_VERSION, Registration
from plimsoll.tools.base import Output, StepContext, StepKind, Timing
from plimsoll.tools.fio.command import LOG_MILLISECONDS, gap_milliseconds
from plimsoll.tools.fio.logs import DIRECTIONS
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import EXACT_DEPTHS
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import OsdsTarget, PeerTarget, Target, TargetKind, VolumeKind, VolumeTarget
from support.client_documents import EPOCH, QUIET_CLUSTER, SECOND, document, make_plan, quiet_host

HEALTHY = replace(QUIET_CLUSTER, osds=12, osds_up=12, osds_in=12, pg_states={"active+clean": 256})
MEMORY_TARGET = 4 * 2**30
_PAUSE = 20
"""Seconds between two trials."""
_POLL, _LAG = 5, 5
"""Seconds between two polls, and by which the pools' counters lag."""
_TAIL = 20
"""How many times as long as others an operation takes that is late."""
_SUBMISSION = 5_000
_STEP = 1.03
_ONE_BY_ONE = 1_500
_RARE = 10
_NEVER_IDLE = 300
"""Operations per second from which on no gap between two is long enough to be read."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """How an attempt goes; functions are given seconds after the start of measuring.

    Attributes:
        pace: how many times its usual rate the storage has.
        late: the share of operations that take much longer than others.
        frozen: seconds from and until which nothing completes, in ascending order.
        status: the state of a healthy cluster -> its state.
        foreign: what another pool has counted; None before it exists.
        host: what the host of an idle client shows -> what it shows.
        interrupted: the user suspends the run.
        moves: the first client runs on another node than before.

    """

    pace: Callable[[float], float] = lambda _: 1.0
    late: Callable[[float], float] = lambda _: 0.0
    frozen: Sequence[tuple[float, float]] = ()
    status: Callable[[float, ClusterStatus], ClusterStatus] = lambda _, status: status
    foreign: Callable[[float], PoolCounters | None] = lambda _: None
    host: Callable[[HostUse], HostUse] = lambda host: host
    interrupted: bool = False
    moves: bool = False


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A point and its storage.

    Attributes:
        parameters: of the tool.
        rate: operations per second of all clients together.
        latency: its mean in seconds; None in a closed loop, where it follows from depth and rate.
        full: share of submissions that fill the depth.
        last_slower: how many times that mean the last client's operations take.
        dispersion: variance of the operations of a second, divided by their mean; 1 if they come at random.
        sigma: of the logarithm of the latency.
        wander: by which part the rate wanders, in waves of about ten seconds.
        scatter: by which part the trials' rates differ.
        trials: repetitions.
        course: of each attempt.
        watched: whether the storage is a Ceph that the conductor watches.
        osds: number of OSDs that may hold the data; a write is on three of them.
        prints: the output of another tool, by the time of its start and the number of the client.

    """

    tool: str = "fio"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    clients: int = 1
    rate: float = 1_000
    latency: float | None = None
    full: float = 1.0
    last_slower: float = 1.0
    dispersion: float = 0.3
    sigma: float = 0.5
    wander: float = 0.01
    scatter: float = 0.01
    ramp: int = 5
    runtime: int = 60
    trials: int = 1
    course: Callable[[TrialKey], Course] = lambda _: Course()
    watched: bool = True
    osds: int = 12
    prefilled: bool = True
    data_set: int = 100 * 2**30
    prints: Callable[[Random, int, int], str] = lambda _, __, ___: ""

    @property
    def timing(self) -> Timing:
        return Timing(ramp_seconds=self.ramp, runtime_seconds=self.runtime)

    @property
    def is_even(self) -> bool:
        """Whether operations are due after equal times."""
        return "rateIops" in self.parameters and self.parameters.get("arrivals") != "Poisson"

    @property
    def plan(self) -> Plan:
        parameters = TOOLS[self.tool].parameters.model_validate(self.parameters)
        plan = make_plan(points=1, clients=self.clients, repetitions=self.trials)
        changes = {
            "tool": self.tool,
            "parameters": parameters.model_dump(mode="json", by_alias=True, exclude_none=True),
            "runtime_seconds": self.runtime,
            "ramp_seconds": self.ramp,
        }
        return plan.model_copy(update={"points": (plan.points[0].model_copy(update=changes),)})


def judged(scene: Scene, chance: Random) -> ResultStatus:
    """Measure a point with as many attempts as the conductor makes."""
    plan, roster, wall = scene.plan, Roster(scene.clients, lost_after=math.inf), EPOCH
    ledger = Ledger(plan)
    for client in range(scene.clients):
        _register(scene, roster, client, f"node-{client}")
    while (key := ledger.next_trial()) is not None:
        course, speed = scene.course(key), chance.gauss(1, scene.scatter)
        if course.moves:
            _register(scene, roster, 0, "another-node", 1)
        attempt = Attempt(
            plan=plan,
            roster=roster,
            timings=Timings(),
            epoch="",
            key=key,
            point=plan.points[0],
            started_at=timestamp(wall),
        )
        for number in range(len(attempt.choose_clients().rounds)):
            attempt.round_number, attempt.t0 = number, wall
            attempt.first_t0 = attempt.first_t0 or wall
            _measure(scene, course, attempt, chance, speed)
            wall += (scene.ramp + scene.runtime + _PAUSE) * SECOND
        moment = Moment(seconds=wall / SECOND, wall=wall)
        if course.interrupted:
            trial = attempt.aborted(Fault(reason=AbortReason.INTERRUPTED, message="suspended"), moment)
        else:
            trial = attempt.measured(trial_of_rounds(attempt.numbers), moment)
        ledger.add(key.point, trial, attempt.matrix)
    memory = Quantiles(min=MEMORY_TARGET, median=MEMORY_TARGET, max=MEMORY_TARGET)
    ceph = CephDescription(settings=OsdSettingsDescription(memory_target_bytes=memory)) if scene.watched else None
    return ledger.status(plan.points[0].name, environment(roster, Environment(ceph=ceph)))


def _register(scene: Scene, roster: Roster, client: int, node: str, attempt: int = 0) -> None:
    registration = Registration(
        protocol=PROTOCOL_VERSION,
        client=client,
        instance=f"{client}/{attempt}",
        attempt=attempt,
        node=node,
        prepared_bytes=scene.data_set,
    )
    roster.register(registration, 0.0, f"192.0.2.{client}")


def _measure(scene: Scene, course: Course, attempt: Attempt, chance: Random, speed: float) -> None:
    """Measure a round of an attempt, with storage that is so many times as fast as usual."""
    rates = [speed * rate * course.pace(second + 0.5) for second, rate in enumerate(_wandering(scene, chance))]
    parameters, nodes = attempt.point.typed_parameters, {client.number: client.node for client in attempt.roster}
    measured = dict[int, Measurement]()
    for client in attempt.round.loading:
        if isinstance(parameters, FioParameters):
            is_last = client == scene.clients - 1
            own = replace(scene, latency=scene.last_slower * scene.latency) if is_last and scene.latency else scene
            output = _Fio(own, course, parameters, rates, chance).output(attempt.t0 + scene.ramp * SECOND)
        else:
            text = scene.prints(chance, attempt.t0, client)
            ended = attempt.t0 + (scene.ramp + scene.runtime) * SECOND + SECOND // 50
            output = Output(exit_code=0, stdout=text, stderr="", files={}, launched_at=attempt.t0, finished_at=ended)
        measured[client] = TOOLS[scene.tool].read(parameters, _context(scene, attempt, client), output)
        # Of rare operations, fio's log of latencies says too little about when they completed.
        assert not measured[client].warnings or scene.rate < _RARE, measured[client].warnings
        attempt.documents[client] = _document(scene, course, attempt, measured[client], client, nodes[client])
    watch = _watch(scene, course, attempt.t0 + scene.ramp * SECOND, [*measured.values()]) if scene.watched else None
    attempt.numbers.append(measure_round(replace(attempt.facts, cluster=watch), attempt.documents))
    attempt.documents = {}


def _wandering(scene: Scene, chance: Random) -> Iterator[float]:
    """Yield one client's rate in each second: a random walk that is drawn back to its mean."""
    memory, wander = 0.9, 0.0
    for _ in range(scene.runtime):
        wander = memory * wander + chance.gauss(0, scene.wander * math.sqrt(1 - memory**2))
        yield scene.rate / scene.clients * (1 + wander)


def _context(scene: Scene, attempt: Attempt, client: int) -> StepContext:
    target: Target = VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/plimsoll", size=100 * 2**30)
    if TOOLS[scene.tool].target is TargetKind.OSDS:
        target = OsdsTarget(keyring="/keyring")
    if peers := attempt.round.servers[client]:
        target = PeerTarget(addresses={peer: f"192.0.2.{peer}" for peer in peers})
    return StepContext(step=StepKind.MEASURE, target=target, timing=scene.timing, seed=1, work_directory="/work")


def _document(
    scene: Scene, course: Course, attempt: Attempt, measurement: Measurement, client: int, node: str
) -> ClientDocument:
    seconds = measurement.runtime / SECOND
    moved = {sample.operation: sample.bytes / seconds for sample in measurement.operations}
    read, written = moved.get(Operation.READ, 0.0), moved.get(Operation.WRITE, 0.0)
    device = DeviceUse(number=f"252:{16 * client}", read=read, written=written, busy=0.95, queue=4.0)
    return document(
        client,
        measurement,
        node=node,
        launched_at=attempt.t0,
        finished_at=measurement.started_at + measurement.runtime,
        data_set_bytes=scene.data_set,
        prefilled=scene.prefilled,
        host=course.host(quiet_host(seconds, device=device if scene.tool == "fio" else None)),
    )


def _watch(scene: Scene, course: Course, start: int, measured: Sequence[Measurement]) -> ClusterWatch:
    """Return the polls; the pool counts what the clients measured, and in the ramp as much per second."""
    size = min(FioParameters.model_validate(scene.parameters).block_sizes) if scene.tool == "fio" else 0
    series = grouped((sample for item in measured for sample in item.operations), lambda sample: sample.operation)
    done = {
        operation: [0.0, *accumulate(map(sum, zip(*(it.cells.ios for it in samples if it.cells), strict=True)))]
        for operation, samples in series.items()
    }

    def counted(operation: Operation, second: float) -> int:
        cells = done.get(operation, [0.0])
        ramp = min(max(0.0, second + scene.ramp), scene.ramp) * cells[-1] / scene.runtime
        return round(ramp + cells[max(0, min(int(second), len(cells) - 1))])

    def sample(second: float) -> ClusterSample:
        reads, writes = counted(Operation.READ, second - _LAG), counted(Operation.WRITE, second - _LAG)
        ours = PoolCounters(reads=reads, writes=writes, read_bytes=size * reads, written_bytes=size * writes)
        pools = {"bench": ours}
        if foreign := course.foreign(second - _LAG):
            pools["foreign"] = foreign
        return ClusterSample(at=start + round(second * SECOND), status=course.status(second, HEALTHY), pools=pools)

    seconds = range(-(scene.ramp // _POLL + 2) * _POLL, scene.runtime + 2 * _POLL, _POLL)
    samples = tuple(sample(second + 0.2) for second in seconds)
    return ClusterWatch(
        samples=samples,
        pools=("bench",) if scene.tool == "fio" else (),
        placement=Placement(osds=scene.osds, per_read=1, per_write=3),
        osd_memory_bytes=HEALTHY.osds * MEMORY_TARGET,
    )


@dataclass(frozen=True)
class _Fio:
    """One client's fio, with the rate in each second at which operations complete while nothing is frozen."""

    scene: Scene
    course: Course
    parameters: FioParameters
    rates: Sequence[float]
    chance: Random

    def output(self, began: int) -> Output:
        """Return the document and the logs of a measurement from a time on, Unix nanoseconds."""
        frozen, width = self.course.frozen, self.scene.timing.slice_seconds
        live = [
            1 - sum(max(0.0, min(end, second + 1) - max(start, second)) for start, end in frozen)
            for second in range(self.scene.runtime)
        ]
        done = [
            drawn(self.chance, rate * part, self.scene.dispersion) for rate, part in zip(self.rates, live, strict=True)
        ]
        counts = self._by_operation(done)
        slices = {operation: list[Counter[int]]() for operation in counts}
        for begin in range(0, self.scene.runtime, width):
            ios = sum(done[begin : begin + width])
            mean = self.scene.latency or self.parameters.io_depth * sum(live[begin : begin + width]) / max(1, ios)
            thawed = [end - start for start, end in frozen if begin <= end < begin + width]
            for operation, cells in counts.items():
                number = sum(cells[begin : begin + width])
                stuck = min(number, round(self.parameters.io_depth * len(thawed) * number / max(1, ios)))
                latencies = self._latencies(number - stuck, mean, self.course.late(begin + width / 2))
                latencies.update(_midpoint(mean + thawed[index % len(thawed)]) for index in range(stuck))
                slices[operation].append(latencies)
        logs = {
            "bw": [line for operation, cells in counts.items() for line in self._rate_log(operation, cells)],
            "clat_hist": [line for operation, parts in slices.items() for line in self._slice_log(operation, parts)],
            "lat": [line for operation, cells in counts.items() for line in self._gap_log(operation, cells)],
        }
        files = {
            f"fio_{kind}.1.log": "".join(f"{milliseconds}, {text}\n" for milliseconds, text in sorted(lines))
            for kind, lines in logs.items()
        }
        totals = {operation: sum(parts, Counter()) for operation, parts in slices.items()}
        files["fio.json"] = json.dumps(self._document(totals, began // 10**6 + 10))
        return Output(exit_code=0, stdout="", stderr="", files=files)

    def _by_operation(self, done: Sequence[int]) -> dict[Operation, list[int]]:
        """Return how many operations of each kind completed in each second; those of a mix come at random."""
        (first, percent), *others = self.parameters.shares.items()
        part = percent / 100
        cells = [min(ios, drawn(self.chance, ios * part, 1 - part)) if others else ios for ios in done]
        rest = [ios - cell for ios, cell in zip(done, cells, strict=True)]
        return {first: cells, **{operation: rest for operation, _ in others}}

    def _latencies(self, ios: int, mean: float, late: float) -> Counter[int]:
        """Return so many latencies in nanoseconds, of which a part is late."""
        values, until = _spread(self.scene.sigma)
        tail, parts = min(ios, drawn(self.chance, ios * late)), Counter[float]()
        for number, factor in ((ios - tail, 1), (tail, _TAIL)):
            if number <= _ONE_BY_ONE:
                parts.update(factor * values[bisect(until, self.chance.random())] for _ in range(number))
                continue
            rest = number
            for value, before, after in zip(values, [0.0, *until], until, strict=False):
                count = min(rest, drawn(self.chance, number * (after - before)))
                parts[factor * value] += count
                rest -= count
            parts[factor] += rest
        # In a closed loop, time and depth determine the sum of all latencies.
        total = sum(value * count for value, count in parts.items())
        usual = total / ios if ios and self.scene.latency is None else 1.0
        latencies = Counter[int]()
        for value, count in parts.items():
            latencies[_midpoint(mean * value / usual)] += count
        return +latencies

    def _rate_log(self, operation: Operation, cells: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield a line for each second in which anything completed."""
        for second, ios in enumerate(cells, start=1):
            if ios:
                kibibytes = ios * min(self.parameters.block_sizes) // 2**10
                yield LOG_MILLISECONDS * second, f"{kibibytes}, {DIRECTIONS[operation]}, 0, 0"

    def _slice_log(self, operation: Operation, parts: Sequence[Counter[int]]) -> Iterator[tuple[int, str]]:
        """Yield a line for each slice but the last; that of an empty one comes with the next operation."""
        width, due = LOG_MILLISECONDS * self.scene.timing.slice_seconds, 0
        prefix = f"{DIRECTIONS[operation]}, {min(self.parameters.block_sizes)}"
        for number, part in enumerate(parts):
            left = Counter(part)
            while due < number and left:
                first = {min(left): 1}
                left -= Counter(first)
                yield number * width + 1, f"{prefix}, {_bins(first)}"
                due += 1
            if left and number < len(parts) - 1:
                yield (number + 1) * width + 1, f"{prefix}, {_bins(left)}"
                due += 1

    def _gap_log(self, operation: Operation, cells: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield a line for the first operation that completes after an interval is over."""
        width = due = gap_milliseconds(self.parameters, self.scene.timing)
        frozen = [(1000 * start, 1000 * end) for start, end in self.course.frozen]
        for second, ios in enumerate(cells):
            begin = 1000 * second
            if ios >= _NEVER_IDLE:
                moments = [*range(begin, begin + 1000, width)]
            elif self.scene.is_even:
                moments = [begin + 1000 * number // ios for number in range(ios)]
            else:
                moments = [begin + int(1000 * self.chance.random()) for _ in range(ios)]
            for start, end in frozen if ios else ():
                if end < begin or start >= begin + 1000:
                    continue
                moments = [moment for moment in moments if not start <= moment < end]
                moments += [round(end)] if begin <= end < begin + 1000 else []
            for moment in sorted(moments):
                if moment >= due:
                    yield moment, f"1000000, {DIRECTIONS[operation]}, 0, 0"
                    due = (moment // width + 1) * width

    def _document(self, latencies: Mapping[Operation, Counter[int]], began: int) -> dict[str, Any]:
        milliseconds = LOG_MILLISECONDS * self.scene.runtime + 1
        result = recorded("3.39") | {"timestamp_ms": began + milliseconds, "timestamp": (began + milliseconds) // 1000}
        (job,) = result["jobs"]
        job |= {"jobname": "measure", "job_start": began, "job_runtime": milliseconds}
        job |= {"read": job["trim"], "write": job["trim"]}
        depth = self.parameters.io_depth
        bucket = ">=64" if depth >= EXACT_DEPTHS[-1] else str(1 << (depth.bit_length() - 1))
        job["iodepth_level"] = dict.fromkeys(job["iodepth_level"], 0.0) | {"1": 100 * (1 - self.scene.full)}
        job["iodepth_level"][bucket] += 100 * self.scene.full
        for operation, counts in latencies.items():
            ios, size = counts.total(), counts.total() * min(self.parameters.block_sizes)
            job[operation] = job[operation] | {
                "io_bytes": size,
                "io_kbytes": size // 2**10,
                "bw_bytes": 1000 * size // milliseconds,
                "bw": 1000 * size // milliseconds // 2**10,
                "iops": round(1000 * ios / milliseconds, 6),
                "runtime": milliseconds,
                "total_ios": ios,
                "slat_ns": latency_fields({_SUBMISSION: ios} if ios else {}),
                "clat_ns": latency_fields(_completions(counts)),
                "lat_ns": latency_fields(counts),
            }
        return result


def drawn(chance: Random, mean: float, dispersion: float = 1.0) -> int:
    """Return a number of events: Poisson's if they are few and come at random, otherwise that of a normal law."""
    if mean <= 0 or mean > 20 or dispersion < 1 / 2:
        return max(0, round(chance.gauss(mean, math.sqrt(dispersion * max(0.0, mean)))))
    number, product, least = -1, 1.0, math.exp(-mean)
    while product > least:
        number, product = number + 1, product * chance.random()
    return number


@cache
def _spread(sigma: float) -> tuple[list[float], list[float]]:
    """Return log-normal latencies whose mean is 1, and for each the probability of it and all shorter ones."""
    normal = NormalDist(-sigma * sigma / 2, sigma)
    edges = [-3.5 * sigma + number * math.log(_STEP) for number in range(math.ceil(8 * sigma / math.log(_STEP)))]
    return [math.exp(edge) / math.sqrt(_STEP) for edge in edges], [*map(normal.cdf, edges[:-1]), 1.0]


def _midpoint(seconds: float) -> int:
    return bin_midpoint(bin_index(max(2 * _SUBMISSION, int(seconds * SECOND))))


def _completions(counts: Mapping[int, int]) -> dict[int, int]:
    return {value - _SUBMISSION: count for value, count in counts.items()}


def _bins(counts: Mapping[int, int]) -> str:
    bins = ["0"] * BIN_COUNT
    for index, count in histogram_of(_completions(counts)).counts.items():
        bins[index] = str(count)
    return ", ".join(bins)
