"""A conductor's session among simulated agents, with a clock and storage that the test controls."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from plimsoll.api.line import LineSearch, Objective
from plimsoll.api.names import RunPhase
from plimsoll.api.result import Trial
from plimsoll.api.status import RunState, TrialKey
from plimsoll.conductor.attempt import Moment, Timings
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.phases import ClusterView, Effect, Ended, Gate, JudgeAttempt, RecordAttempt, Signal
from plimsoll.conductor.published import run_state
from plimsoll.conductor.session import Session
from plimsoll.measure.histogram import sample_of
from plimsoll.measure.sample import ClientDocument, Clock, LatencySample
from plimsoll.measure.trial import measure_round
from plimsoll.plan.document import Plan
from plimsoll.protocol import messages
from plimsoll.protocol.messages import AgentState, RefusedError
from support.client_documents import BLOCK, EPOCH, SECOND, even_cells, make_document, make_plan


@dataclass
class SimulatedAgent:
    """An agent process that obeys its orders, as far as the test lets it."""

    client: int
    attempt: int = 0
    stopped: bool = False
    epoch: str = ""
    after: int = -1
    order: messages.Order = field(default_factory=messages.WaitOrder)
    prepared_bytes: int = 0
    used_by: TrialKey | None = None
    armed: messages.ArmOrder | None = None
    started: bool = False
    left: bool = False

    @property
    def instance(self) -> str:
        return f"{self.client}/{self.attempt}"


class Simulation:
    """The parts of a run that outlive a conductor, and the current conductor."""

    def __init__(
        self, plan: Plan, timings: Timings | None = None, *, cluster: ClusterView | None = None, job: str = ""
    ) -> None:
        """Start a run. `cluster` is the conductor's view of a cluster, if there is one.

        `job` is the conductor's Job if it was created beside the clients' Jobs; empty if the clients already exist.
        """
        self.plan = plan
        self.job = job
        self.cluster = cluster
        self.cluster_answers = True
        self.timings = timings or Timings(lost_after=20.0, start_grace=3.0, overrun_grace=30.0)
        self.seconds = 100.0
        self.stored: dict[str, tuple[Trial, ...]] = {}
        self.stored_state: RunState | None = None
        self.agents = [SimulatedAgent(client=number) for number in range(plan.members)]
        self.posts: list[messages.ResultPost] = []
        self.touched: list[tuple[str, TrialKey, int]] = []
        self.on_old_data: list[tuple[TrialKey, int]] = []
        """The attempts whose clients worked on data sets that were not prepared, or that another attempt had used."""
        self.armed: dict[tuple[str, TrialKey], set[int]] = {}
        self.failing: set[int] = set()
        self.staged: dict[tuple[str, TrialKey], set[int]] = {}
        self.served: list[tuple[int, dict[int, str]]] = []
        """The clients that served, each with its peers."""
        self.t0 = 0
        self.arms_at: dict[int, float] = {}
        """The time before which a client is not armed."""
        self.staging: dict[int, AgentState] = {}
        """The staging state of clients that do not reach Staged at once."""
        self.epochs = 0
        self.session = self.new_session()

    @property
    def moment(self) -> Moment:
        return Moment(seconds=self.seconds, wall=EPOCH + int(self.seconds * SECOND))

    @property
    def state(self) -> RunState:
        return run_state(self.session, self.moment)

    def new_session(self) -> Session:
        self.epochs += 1
        return Session(
            plan=self.plan,
            ledger=Ledger(self.plan, self.stored),
            epoch=f"epoch-{self.epochs}",
            timings=self.timings,
            before=self.stored_state,
            moment=self.moment,
            gate=Gate(watched=self.cluster is not None, fresh_seconds=self.timings.gate_fresh),
            job=self.job,
        )

    # -- the conductor's shell

    def crash(self) -> None:
        """Kill the conductor and start another from the stored state."""
        self.session = self.new_session()

    def work(self, *, crash_before: bool = False, crash_after: bool = False) -> bool:
        """Advance and perform one effect, perhaps dying before or after it is durable; false if there was none."""
        self.look()
        self.session.advance(self.moment)
        effect = self.session.take_effect()
        if effect is None:
            return False
        if crash_before:
            self.crash()
            return True
        self._make_durable(effect)
        if crash_after:
            self.crash()
            return True
        self._acknowledge(effect)
        self.session.advance(self.moment)
        return True

    def _make_durable(self, effect: Effect) -> None:
        match effect:
            case Signal.BEGIN_ATTEMPT | Signal.RELEASE:
                self.stored_state = self.state
            case RecordAttempt(point=point, status=status):
                self.stored[point] = status.trials
            case JudgeAttempt() | Signal.READ_TOKEN:
                pass

    def _acknowledge(self, effect: Effect) -> None:
        match effect:
            case Signal.BEGIN_ATTEMPT:
                self.session.begun(self.moment)
            case Signal.RELEASE:
                self.session.release(self.moment)
            case Signal.READ_TOKEN:
                self.session.authorized("")
            case RecordAttempt():
                self.session.recorded(self.moment)
            case JudgeAttempt(facts=facts, documents=documents):
                self.session.judged(measure_round(facts, documents), self.moment)

    def look(self) -> None:
        if self.cluster is not None and self.cluster_answers:
            self.session.see(self.cluster, self.moment)

    def publish(self) -> None:
        self.stored_state = self.state

    # -- the agents

    def poll(self, agent: SimulatedAgent) -> None:
        """Let an agent fetch its order and act on it as far as it can now."""
        if agent.stopped or agent.left:
            return
        try:
            self._poll(agent)
        except RefusedError as refused:
            if refused.code == "Superseded":
                agent.left = True
            else:
                agent.epoch = ""

    def _poll(self, agent: SimulatedAgent) -> None:
        session = self.session
        if not agent.epoch:
            registration = messages.Registration(
                protocol=messages.PROTOCOL_VERSION,
                client=agent.client,
                instance=agent.instance,
                attempt=agent.attempt,
                node=self.node(agent.client),
                prepared_bytes=agent.prepared_bytes,
                data_set_used=agent.used_by is not None,
            )
            session.register(registration, self.moment, f"10.0.0.{agent.client}")
            agent.epoch, agent.after, agent.order, agent.started = session.epoch, -1, messages.WaitOrder(), False
        client = session.client(agent.client, agent.instance, agent.epoch, self.moment)
        if client.sequence > agent.after:
            agent.after, agent.order = client.sequence, client.order
            self._obey(agent)
            session.advance(self.moment)
        if isinstance(agent.order, messages.ArmOrder) and agent.armed is not agent.order:
            self._arm(agent, agent.order)
        if isinstance(agent.order, messages.GoOrder) and agent.started:
            self._finish(agent)

    def _obey(self, agent: SimulatedAgent) -> None:
        match agent.order:
            case messages.WaitOrder():
                agent.started = False
                self._report(agent, AgentState.IDLE)
            case messages.PrepareOrder():
                agent.prepared_bytes, agent.used_by = 2**30, None
                self._report(agent, AgentState.PREPARED, done=2**30)
            case messages.StageOrder(trial=trial):
                self._use_data_set(agent, trial)
                state = self.staging.get(agent.client, AgentState.STAGED)
                if state is AgentState.STAGED:
                    self.staged.setdefault((agent.epoch, trial), set()).add(agent.client)
                self._report(agent, state, message="no space" if state is AgentState.FAILED else "")
            case messages.ServeOrder(peers=peers):
                self.served.append((agent.client, peers))
                self._report(agent, AgentState.SERVING)
            case messages.ArmOrder():
                agent.armed = None
            case messages.GoOrder(trial=trial, t0_nanoseconds=t0):
                self.t0 = t0
                if self.moment.wall > t0 + SECOND // 4:
                    self._report(agent, AgentState.LATE)
                    return
                agent.started = True
                self.touched.append((agent.epoch, trial, agent.client))
                self._use_data_set(agent, trial)
                self._report(agent, AgentState.RUNNING)
            case messages.LeaveOrder():
                agent.left = True
                self._report(agent, AgentState.LEAVING)

    def _arm(self, agent: SimulatedAgent, order: messages.ArmOrder) -> None:
        if self.seconds < self.arms_at.get(agent.client, 0.0):
            return
        agent.armed = order
        self.armed.setdefault((agent.epoch, order.trial), set()).add(agent.client)
        self._report(agent, AgentState.ARMED)

    def _use_data_set(self, agent: SimulatedAgent, trial: TrialKey) -> None:
        if not agent.prepared_bytes or agent.used_by not in {None, trial}:
            self.on_old_data.append((trial, agent.client))
        agent.used_by = trial

    def _finish(self, agent: SimulatedAgent) -> None:
        if self.moment.wall < self.t0 + 5 * SECOND:
            return
        agent.started = False
        assert isinstance(agent.order, messages.GoOrder)
        assert agent.armed is not None
        post = messages.ResultPost(
            epoch=agent.epoch,
            client=agent.client,
            instance=agent.instance,
            trial=agent.order.trial,
            round_number=agent.armed.round_number,
            document=self.document(agent.client, agent.armed),
        )
        self.posts.append(post)
        self.post(post)

    def document(self, client: int, armed: messages.ArmOrder) -> ClientDocument:
        return make_document(client, self.t0, exit_code=1 if client in self.failing else 0)

    def post(self, post: messages.ResultPost) -> bool | None:
        """Deliver a document, perhaps again; None if it was refused."""
        try:
            kept = self.session.post(post, self.moment)
        except RefusedError:
            return None
        self.session.advance(self.moment)
        return kept

    def report(self, client: int, state: AgentState, message: str) -> None:
        known = self.session.roster.get([client])[0]
        self._send(self.session.epoch, client, known.instance, known.sequence, state=state, message=message)

    def kill(self, agent: SimulatedAgent) -> None:
        self.agents[agent.client] = SimulatedAgent(client=agent.client, attempt=agent.attempt + 1)

    def node(self, client: int) -> str:
        return f"node-{client % 2}"

    def _report(self, agent: SimulatedAgent, state: AgentState, done: int = 0, message: str = "") -> None:
        fields = {"state": state, "message": message, "done_bytes": done, "clock": Clock(offset=0.0, error=0.001)}
        self._send(agent.epoch, agent.client, agent.instance, agent.after, **fields)
        self.session.advance(self.moment)

    def _send(self, epoch: str, client: int, instance: str, sequence: int, **fields: Any) -> None:
        report = messages.Report(epoch=epoch, client=client, instance=instance, sequence=sequence, **fields)
        self.session.report(report, self.moment)

    # -- both

    @property
    def trials(self) -> list[Trial]:
        return [trial for stored in self.stored.values() for trial in stored]

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds

    def until(self, phase: type, *, without: tuple[int, ...] = (), limit: int = 3000) -> None:
        """Let everything but some agents run until the session is in a phase."""
        for _ in range(limit):
            if isinstance(self.session.phase, phase):
                return
            self.work()
            for agent in self.agents:
                if agent.client not in without and not isinstance(self.session.phase, phase):
                    self.poll(agent)
            self.pass_time(0.0 if isinstance(self.session.phase, phase) else 0.05)
        message = f"never {phase.__name__}, but {self.session.phase}"
        raise AssertionError(message)

    def run_for(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self._run_all()
            self.pass_time(0.1)

    def _run_all(self) -> None:
        while self.work():
            pass
        for agent in self.agents:
            self.poll(agent)

    def settle(self, *, limit: int = 20_000) -> None:
        """Let everything run without faults until the session has ended."""
        for agent in self.agents:
            agent.stopped = False
        for _ in range(limit):
            if isinstance(self.session.phase, Ended):
                return
            self._run_all()
            self.pass_time(0.2)
        message = f"stuck in {self.session.phase}"
        raise AssertionError(message)

    @property
    def phase(self) -> RunPhase:
        return self.state.phase


ROUGH_SEARCH = LineSearch(
    start=400, limit=20_000, precision_percent=20, objectives=(Objective(percentile="99", latency="5ms"),)
)
SECONDS = 4
FAST, SLOW = 1_000_000, 9_000_000


def search_plan(*, points: int = 1, searches: int = 1, repetitions: int = 2, clients: int = 2) -> Plan:
    plan = make_plan(points=points, clients=clients, repetitions=repetitions)
    searched = [
        point.model_copy(update={"line": ROUGH_SEARCH if number < searches else None})
        for number, point in enumerate(plan.points)
    ]
    return plan.model_copy(update={"points": tuple(searched)})


def offered_document(client: int, t0: int, rate: int, *, latency: int, full: float = 0.0) -> ClientDocument:
    """Return what a client sends that completed all operations that arrived, each with this latency."""
    document = make_document(client, t0)
    assert document.measurement is not None
    ios = rate * SECONDS
    counts = {"ios": ios, "bytes": ios * BLOCK, "latency": _same(latency, ios), "cells": even_cells(rate, SECONDS)}
    read = document.measurement.operations[0].model_copy(update=counts)
    measurement = document.measurement.model_copy(update={"operations": (read,), "depth_full_share": full})
    return document.model_copy(update={"measurement": measurement})


@cache
def _same(latency: int, count: int) -> LatencySample:
    return sample_of([latency] * count)


class SearchSimulation(Simulation):
    """A run whose storage is slow where `breaks` says so of the load of all clients."""

    def __init__(self, plan: Plan, breaks: Callable[[int], bool] = lambda load: load > 3_000) -> None:
        self.breaks = breaks
        super().__init__(plan)

    def document(self, client: int, armed: messages.ArmOrder) -> ClientDocument:
        rate = armed.parameters.get("rateIops")
        if not isinstance(rate, int) or client in self.failing:
            return super().document(client, armed)
        latency = SLOW if self.breaks(rate * self.plan.clients) else FAST
        return offered_document(client, self.t0, rate, latency=latency)

    def loads(self, point: str = "w-000") -> list[float]:
        return [trial.probe.offered for trial in self.measured(point) if trial.probe]

    def measured(self, point: str = "w-000") -> list[Trial]:
        return [trial for trial in self.stored[point] if trial.abort is None]
