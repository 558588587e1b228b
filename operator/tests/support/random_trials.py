"""Points on simulated storage, through the conductor's own path: documents of the tools, trials, attempts, verdict."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from random import Random
from typing import Any

from plimsoll.api.environment import CephDescription, Environment, OsdSettingsDescription, Quantiles
from plimsoll.api.names import AbortReason, Operation
from plimsoll.api.result import Finding, ResultStatus, Trial
from plimsoll.api.run import Gates, Timeouts
from plimsoll.api.storage import Prepare, Volume
from plimsoll.ceph.watch import ClusterSample, ClusterStatus, ClusterWatch, PoolCounters
from plimsoll.conductor.attempt import Attempt, Fault, Moment, cast_of, new_attempt, parameters_of
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.phases import judging
from plimsoll.conductor.reporting import environment, timestamp
from plimsoll.conductor.roster import Roster
from plimsoll.measure.sample import ClientDocument, Clock, DeviceUse, HostUse, Measurement
from plimsoll.measure.trial import combined, measure_trial
from plimsoll.plan.document import Plan, Point, RunIdentity
from plimsoll.protocol.messages import PROTOCOL_VERSION, Registration
from plimsoll.tools.base import Output, StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import OsdsTarget, PeerTarget, Target, VolumeKind, VolumeTarget
from support.client_documents import EPOCH, QUIET_CLUSTER, quiet_host
from support.random_fio import SECOND, RandomRun

POLL_SECONDS = 5
LAG = 5
"""Seconds by which the pools' counters lag."""

PAUSE = 20
"""Seconds between two trials."""

HEALTHY = replace(QUIET_CLUSTER, osds=12, osds_up=12, osds_in=12, pg_states={"active+clean": 256})
MEMORY_TARGET = 4 * 2**30


@dataclass(frozen=True, kw_only=True)
class Course:
    """How one attempt goes; its functions are given seconds after the start of measuring.

    Attributes:
        pace: how many times its usual rate the storage has.
        late: the share of operations that take much longer than others.
        frozen: seconds from and until which nothing completes, in ascending order.
        status: the state of a healthy cluster -> its state.
        foreign: what other pools have counted; None before they exist.
        host: what an idle client's host shows -> what it shows.
        interrupted: the user suspends the run before it ends.
        moves: a client runs on another node than before.
    """

    pace: Callable[[float], float] = lambda _: 1.0
    late: Callable[[float], float] = lambda _: 0.0
    frozen: Sequence[tuple[float, float]] = ()
    status: Callable[[float, ClusterStatus], ClusterStatus] = lambda _, status: status
    foreign: Callable[[float], PoolCounters | None] = lambda _: None
    host: Callable[[HostUse], HostUse] = lambda host: host
    interrupted: bool = False
    moves: bool = False


QUIET = Course()


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A point and its storage.

    Attributes:
        rate: operations per second of all clients together.
        latency: mean in seconds, of a limited rate.
        full: share of submissions that fill the depth.
        dispersion: variance of the operations of a second, divided by their mean.
        sigma: of the logarithm of the latency.
        wander: by which part the rate wanders from second to second, in waves of about ten seconds.
        scatter: by which part trials differ.
        trials: repetitions; of one trial its own verdict counts, of several that of the point.
        course: of an attempt, by the number of its pass and of the attempt at it.
        tool: another one than fio; `prints` returns its output, by the time of its start in Unix nanoseconds and the client.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    clients: int = 1
    rate: float = 1000
    latency: float | None = None
    full: float = 1.0
    dispersion: float = 0.3
    sigma: float = 0.5
    wander: float = 0.01
    scatter: float = 0.01
    ramp: int = 5
    runtime: int = 60
    trials: int = 1
    course: Callable[[int, int], Course] = lambda _, __: QUIET
    watched: bool = True
    prefilled: bool = True
    data_set: int = 100 * 2**30
    tool: str = "fio"
    prints: Callable[[Random, int, int], str] = lambda _, __, ___: ""
    node: Callable[[int], str] = lambda client: f"node-{client}"

    @property
    def plan(self) -> Plan:
        parameters = TOOLS[self.tool].parameters.model_validate(self.parameters)
        point = Point(
            name="w-000",
            workload="w",
            tool=self.tool,
            parameters=parameters.model_dump(mode="json", by_alias=True, exclude_none=True),
            label=parameters.label(),
            clients=self.clients,
            runtime_seconds=self.runtime,
            ramp_seconds=self.ramp,
        )
        return Plan(
            run=RunIdentity(name="simulated", namespace="default", uid="u"),
            seed=1,
            clients=self.clients,
            repetitions=self.trials,
            points=(point,),
            order=((0,),) * self.trials,
            volume=Volume(size=self.data_set),
            prepare=Prepare(),
            gates=Gates(),
            timeouts=Timeouts(ready_seconds=1000, total_seconds=2_000_000),
        )


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is said about a point: of one trial what is said about it, of several what is said about their summary."""

    verdict: str
    findings: Sequence[Finding]
    trials: Sequence[Trial]
    status: ResultStatus


def judged(scene: Scene, chance: Random) -> Judged:
    """Measure a point with as many attempts as the conductor makes."""
    ledger, roster, wall = Ledger(scene.plan), Roster(scene.clients, lost_after=float("inf")), EPOCH
    for client in range(scene.clients):
        _register(roster, scene, client, 0)
    while (key := ledger.next_trial()) is not None:
        course = scene.course(key.pass_number, key.attempt)
        if course.moves:
            _register(roster, scene, 0, key.pass_number)
        attempt = new_attempt(ledger, key, timestamp(wall))
        attempt.cast = cast_of(attempt.point, roster)
        speed = chance.gauss(1, scene.scatter)
        for number in range(len(attempt.cast.rounds)):
            attempt.round_number, attempt.t0 = number, wall
            _measure(scene, course, attempt, roster, chance, speed)
            wall += (scene.ramp + scene.runtime + PAUSE) * SECOND
        now = Moment(seconds=wall / SECOND, wall=wall)
        if course.interrupted:
            fault = Fault(reason=AbortReason.INTERRUPTED, message="the run was suspended")
            trial = attempt.aborted(fault, epoch="e", moment=now)
        else:
            trial = attempt.measured(combined(attempt.numbers), epoch="e", moment=now)
        ledger.add(key.point, trial, attempt.matrix)
    memory = Quantiles(min=MEMORY_TARGET, median=MEMORY_TARGET, max=MEMORY_TARGET)
    ceph = CephDescription(settings=OsdSettingsDescription(memory_target_bytes=memory)) if scene.watched else None
    status = ledger.status("w-000", environment(roster, Environment(ceph=ceph)))
    says = status if scene.trials > 1 else status.trials[-1]
    return Judged(verdict=str(says.verdict), findings=says.findings, trials=status.trials, status=status)


def _register(roster: Roster, scene: Scene, client: int, replaced: int) -> None:
    roster.register(
        Registration(
            protocol=PROTOCOL_VERSION,
            client=client,
            instance=f"{client}/{replaced}",
            attempt=replaced,
            node=f"other-{replaced}" if replaced else scene.node(client),
            prepared_bytes=scene.data_set,
        ),
        0.0,
        f"192.0.2.{client}",
    )


def _measure(scene: Scene, course: Course, attempt: Attempt, roster: Roster, chance: Random, speed: float) -> None:
    """Measure a round of an attempt at storage that is so many times as fast as usual."""
    rates = [speed * course.pace(second + 0.5) * each for second, each in enumerate(_wandering(scene, chance))]
    nodes = {client.number: client.node for client in roster}
    measured = {}
    for client in attempt.round.loading:
        context, output = _context(attempt, client), _output(scene, course, attempt, client, chance, rates)
        measured[client] = TOOLS[scene.tool].parse(parameters_of(attempt.point), context, output)
    attempt.documents = {
        client: _document(scene, course, attempt, client, nodes[client], measurement)
        for client, measurement in measured.items()
    }
    effect = judging(attempt, Ledger(scene.plan).plan, roster)
    watch = _watch(scene, course, attempt, [*measured.values()]) if scene.watched else None
    attempt.numbers.append(measure_trial(replace(effect.facts, cluster=watch), effect.documents))


def _wandering(scene: Scene, chance: Random) -> Iterator[float]:
    """Yield a client's usual rate in each second: a random walk that is drawn back to its mean."""
    memory, wander = 0.9, 0.0
    step = scene.wander * (1 - memory**2) ** 0.5
    for _ in range(scene.runtime):
        wander = memory * wander + chance.gauss(0, step)
        yield scene.rate / scene.clients * (1 + wander)


def _output(
    scene: Scene, course: Course, attempt: Attempt, client: int, chance: Random, rates: Sequence[float]
) -> Output:
    began = attempt.t0 + scene.ramp * SECOND + 10 * 10**6
    ended = began + scene.runtime * SECOND + SECOND // 1000
    if scene.tool != "fio":
        text = scene.prints(chance, attempt.t0, client)
        return Output(
            exit_code=0, stdout=text, stderr="", files={}, launched_at=attempt.t0, finished_at=ended + SECOND // 100
        )
    parameters = parameters_of(attempt.point)
    assert isinstance(parameters, FioParameters)
    run = RandomRun(
        parameters=parameters,
        timing=Timing(ramp_seconds=scene.ramp, runtime_seconds=scene.runtime),
        started_at=began // 10**6,
        rates=rates,
        late=[course.late(second + 0.5) for second in range(scene.runtime)],
        frozen=course.frozen,
        sigma=scene.sigma,
        dispersion=scene.dispersion,
        latency=scene.latency,
        full=scene.full,
    )
    return Output(exit_code=0, stdout="", stderr="", files=run.files(chance), finished_at=ended)


def _context(attempt: Attempt, client: int) -> StepContext:
    peers = attempt.round.servers[client]
    target: Target = VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/plimsoll", size=100 * 2**30)
    if attempt.point.tool == "osdBench":
        target = OsdsTarget(keyring="/etc/plimsoll/osd-bench/keyring")
    elif peers:
        target = PeerTarget(addresses={peer: f"192.0.2.{peer}" for peer in peers})
    timing = Timing(ramp_seconds=attempt.point.ramp_seconds, runtime_seconds=attempt.point.runtime_seconds)
    return StepContext(step=StepKind.MEASURE, target=target, timing=timing, seed=1, work_directory="/work")


def _document(
    scene: Scene, course: Course, attempt: Attempt, client: int, node: str, measurement: Measurement
) -> ClientDocument:
    seconds = measurement.runtime / SECOND
    moved = {sample.operation: sample.bytes / seconds for sample in measurement.operations}
    read, written = moved.get(Operation.READ, 0.0), moved.get(Operation.WRITE, 0.0)
    device = DeviceUse(number=f"252:{16 * client}", read=read, written=written, busy=0.95, queue=4.0)
    return ClientDocument(
        client=client,
        node=node,
        exit_code=0,
        launched_at=attempt.t0,
        finished_at=measurement.started_at + measurement.runtime,
        argv=(TOOLS[scene.tool].program,),
        measurement=measurement,
        raw_sha256=f"{client:064x}",
        clock=Clock(offset=0.0001, error=0.0002),
        data_set_bytes=scene.data_set,
        prefilled=scene.prefilled,
        host=course.host(quiet_host(seconds, device=device if scene.tool == "fio" else None)),
    )


def _watch(scene: Scene, course: Course, attempt: Attempt, measured: Sequence[Measurement]) -> ClusterWatch:
    """Return the polls of the cluster, whose pools count what the clients measured, and as much in the ramp."""
    start = attempt.t0 + scene.ramp * SECOND
    done = {operation: [0.0, *accumulate(_cells(measured, operation))] for operation in Operation}
    size = FioParameters.model_validate(scene.parameters).block_size if scene.tool == "fio" else 4096

    def counted(operation: Operation, second: float) -> int:
        cells, number = done[operation], max(0, min(int(second), scene.runtime))
        ramp = min(1.0, (second + scene.ramp) / scene.ramp) if scene.ramp else 1.0
        return round(cells[number] + max(0.0, ramp) * cells[-1] / scene.runtime * scene.ramp) if len(cells) > 1 else 0

    def sample(second: float) -> ClusterSample:
        reads, writes = (counted(operation, second - LAG) for operation in (Operation.READ, Operation.WRITE))
        ours = PoolCounters(reads=reads, writes=writes, read_bytes=size * reads, written_bytes=size * writes)
        foreign = course.foreign(second - LAG)
        return ClusterSample(
            at=start + round(second * SECOND),
            status=course.status(second, HEALTHY),
            pools={"bench": ours} | ({} if foreign is None else {"foreign": foreign}),
        )

    first, last = -(scene.ramp + 2) // POLL_SECONDS - 1, scene.runtime // POLL_SECONDS + 2
    samples = [sample(POLL_SECONDS * number + 0.2) for number in range(first, last)]
    return ClusterWatch(samples=tuple(samples), pools=("bench",) if scene.tool == "fio" else ())


def _cells(measured: Sequence[Measurement], operation: Operation) -> Iterator[float]:
    """Yield how many operations all clients completed in each second."""
    samples = [sample for measurement in measured for sample in measurement.operations if sample.operation is operation]
    for parts in zip(*(sample.cells.ios for sample in samples if sample.cells), strict=True):
        yield sum(parts)
