"""A conductor in a pretended cluster: what it writes and how it ends, with its real ledger, without agents."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from typing import Any

from plimsoll.api.environment import Environment
from plimsoll.api.line import Probe, ProbeOutcome
from plimsoll.api.names import AbortReason, FailureReason, Outcome, RunPhase, Verdict
from plimsoll.api.result import Abort, Finding, InFlight, ResultStatus, Trial
from plimsoll.api.status import STATE_FILE, CurrentTrial, Failure, RunState, TrialKey
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.main import EXIT_COMPLETE, EXIT_INTERRUPTED, EXIT_OF_FAILURE
from plimsoll.conductor.roster import Roster, why_not_ready
from plimsoll.conductor.sink import result_display
from plimsoll.lifecycle import naming
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.line.observe import probe_of
from plimsoll.measure.trial import TrialNumbers, measure_round
from plimsoll.plan.document import PLAN_FILE, Plan, load_plan
from plimsoll.plan.expand import most_trials
from support.client_documents import EPOCH, make_document
from support.fake_kube import is_going
from support.pretend_cluster import KUBELET, Document, PretendCluster, client_of, exit_code, label, phase

LINE = 3000
"""Operations per second from which trials of a search break."""


@dataclass
class Load:
    """A trial that was begun: the clients' pods by number."""

    run: str
    epoch: str
    key: TrialKey
    pods: dict[int, str]


@dataclass
class Knobs:
    """How conductors behave.

    Attributes:
        verdict: of every trial.
        fails: runs by UID that fail at their next step, and why.
        stuck: conductors say nothing and do nothing.
        stays: the phase, Preparing, WaitingForWindow, Measuring or Complete, in which conductors stay.

    """

    verdict: Verdict = Verdict.VALID
    fails: dict[str, FailureReason] = field(default_factory=dict)
    stuck: bool = False
    stays: RunPhase | None = None


class PretendConductors:
    """All conductors of a cluster; `step` lets each do one thing."""

    def __init__(self, cluster: PretendCluster) -> None:
        self.cluster = cluster
        self.knobs = Knobs()
        self.loads: list[Load] = []
        self._since: dict[str, datetime] = {}

    def pods(self) -> list[Document]:
        def is_running(pod: Document) -> bool:
            is_conductor = label(pod, naming.LABEL_COMPONENT) == naming.CONDUCTOR
            return is_conductor and phase(pod) == "Running" and exit_code(pod) is None

        return list(self.cluster.kube.objects("Pod", is_running))

    def step(self) -> None:
        for pod in self.pods():
            if pod["spec"].get("nodeName") in self.cluster.faults.dead_nodes:
                continue
            desk = _Desk(self, pod)
            if not desk.is_complete:
                # Something that it cannot do without was taken away.
                self.cluster.end(pod, 1, "NotFound: the operator makes it before the conductor")
            elif is_going(pod):
                desk.stop()
            elif not self.knobs.stuck:
                desk.step(self._since.setdefault(pod["metadata"]["uid"], self.cluster.now))
            if is_going(pod):
                self.cluster.let_go(pod, KUBELET)

    def kill(self, pod: Document) -> None:
        self.cluster.end(pod, 137, "")


class _Desk:
    """One conductor's objects at one moment."""

    def __init__(self, conductors: PretendConductors, pod: Document) -> None:
        self._all = conductors
        self._cluster = conductors.cluster
        self._pod = pod
        self.uid = label(pod, naming.LABEL_RUN_UID)
        self.epoch = pod["metadata"]["uid"]
        run = label(pod, naming.LABEL_RUN)
        names = {"plan": naming.plan_config_map(run), "state": naming.state_config_map(run)}
        maps = {obj["metadata"]["name"]: obj for obj in self._cluster.of_run("ConfigMap", self.uid)}
        self._maps = {part: maps[name] for part, name in names.items() if name in maps}
        self._results = {obj["spec"]["point"]: obj for obj in self._cluster.of_run("BenchmarkResult", self.uid)}

    @property
    def is_complete(self) -> bool:
        """Whether everything exists that the conductor needs; at its end it needs no results."""
        if not self._maps.keys() >= {"plan", "state"}:
            return False
        over = (self.state.epoch, self.state.phase) == (self.epoch, RunPhase.COMPLETE)
        return over or self._results.keys() >= {point.name for point in self.plan.points}

    @property
    def plan(self) -> Plan:
        return _load_plan(self._maps["plan"]["data"][PLAN_FILE])

    @cached_property
    def state(self) -> RunState:
        return RunState.model_validate_json(self._maps["state"]["data"][STATE_FILE])

    def _ledger(self) -> Ledger:
        recorded: dict[str, Any] = {
            name: obj.get("status", {}).get("trials", ()) for name, obj in self._results.items()
        }
        return Ledger(self.plan, {name: tuple(map(Trial.model_validate, trials)) for name, trials in recorded.items()})

    # -- what a conductor does

    def step(self, since: datetime) -> None:
        ledger, state = self._ledger(), self.state
        if state.epoch != self.epoch:
            orphan = self._noted()
            if orphan is not None and not ledger.has(orphan):
                self._record(ledger, self._aborted(orphan, AbortReason.CONDUCTOR_RESTARTED))
            self._publish(ledger, phase=RunPhase.GATHERING, missing=self._missing())
            self._cluster.away.discard(self.uid)
        elif state.phase is RunPhase.COMPLETE:
            if self._all.knobs.stays is not RunPhase.COMPLETE:
                self._leave(EXIT_COMPLETE)
        elif state.failure is not None:
            self._leave(EXIT_OF_FAILURE[state.failure.reason], f"{state.failure.reason}: {state.failure.message}")
        elif self.uid in self._all.knobs.fails:
            self._fail(ledger, self._all.knobs.fails[self.uid], "as it was told", self._missing())
        elif state.elapsed_seconds > self.plan.timeouts.total_seconds:
            self._fail(ledger, FailureReason.DEADLINE_EXCEEDED, "the run's totalSeconds are over")
        elif state.in_flight is not None and self._all.knobs.stays is RunPhase.MEASURING:
            pass
        elif state.in_flight is not None:
            self._go_on(ledger, state.in_flight)
        else:
            self._gather(ledger, since)

    def stop(self) -> None:
        ledger, state = self._ledger(), self.state
        if state.epoch == self.epoch and state.in_flight is not None:
            self._record(ledger, self._aborted(state.in_flight, AbortReason.INTERRUPTED))
        if state.phase not in {RunPhase.COMPLETE, RunPhase.FAILED}:
            self._publish(ledger, phase=RunPhase.INTERRUPTED)
        self._cluster.away.discard(self.uid)
        self._cluster.end(self._pod, EXIT_INTERRUPTED)

    def _gather(self, ledger: Ledger, since: datetime) -> None:
        key, missing, timeouts = ledger.next_trial(), self._missing(), self.plan.timeouts
        limit = timeouts.ready_seconds + (0 if self._gathered() else timeouts.provision_seconds)
        if key is None:
            self._publish(ledger, phase=RunPhase.COMPLETE)
        elif missing and (self._cluster.now - since).total_seconds() > limit:
            words = why_not_ready(Roster(self.plan.members, lost_after=1.0), missing, timeouts.ready_seconds)
            self._fail(ledger, FailureReason.CLIENTS_NOT_READY, words, missing)
        elif missing:
            self._publish(ledger, phase=RunPhase.GATHERING, missing=missing)
        elif self._all.knobs.stays in {RunPhase.PREPARING, RunPhase.WAITING_FOR_WINDOW}:
            self._publish(ledger, phase=self._all.knobs.stays)
        else:
            self._all._since[self.epoch] = self._cluster.now
            pods = {client: pod["metadata"]["uid"] for client, pod in self._accepted().items()}
            self._all.loads.append(Load(run=self.uid, epoch=self.epoch, key=key, pods=pods))
            note = InFlight(pass_number=key.pass_number, attempt=key.attempt, started_at=self._cluster.now.isoformat())
            update = {"inFlight": note.model_dump(mode="json", exclude_none=True)}
            self._cluster.edit(self._results[key.point], lambda new: new.setdefault("status", {}).update(update))
            self._publish(ledger, phase=RunPhase.MEASURING, in_flight=key)
            if self.plan.ceph is not None and self.plan.ceph.actions:
                self._cluster.away.add(self.uid)

    def _gathered(self) -> str:
        """Return the Job whose clients have all registered, or register now; empty if some have not."""
        job = str(self._pod["metadata"]["ownerReferences"][0]["uid"])
        return job if self.state.gathered == job or not self._missing() else ""

    def _go_on(self, ledger: Ledger, key: TrialKey) -> None:
        load = next((load for load in reversed(self._all.loads) if (load.run, load.key) == (self.uid, key)), None)
        now = {client: pod["metadata"]["uid"] for client, pod in self._accepted().items()}
        if load is None or now != load.pods:
            self._record(ledger, self._aborted(key, AbortReason.CLIENT_LOST))
        else:
            self._record(ledger, self._measured(key))
        self._cluster.away.discard(self.uid)
        self._publish(ledger, phase=RunPhase.MEASURING)

    def _fail(self, ledger: Ledger, reason: FailureReason, words: str, missing: tuple[int, ...] = ()) -> None:
        failure = Failure(reason=reason, message=words)
        self._publish(ledger, phase=RunPhase.FAILED, failure=failure, missing=missing)

    def _leave(self, code: int, words: str = "") -> None:
        self._cluster.away.discard(self.uid)
        for pod in self._accepted().values():
            self._cluster.end(pod, 0)
        self._cluster.end(self._pod, code, words)

    # -- agents

    def _accepted(self) -> dict[int, Document]:
        """Return the pods of the processes that a conductor accepts: the latest of each client, if it runs."""
        pods: dict[int, Document] = {}
        for pod in self._cluster.of_run("Pod", self.uid):
            client, known = client_of(pod), pods.get(client_of(pod) or 0)
            if client is not None and (known is None or _attempt(pod) >= _attempt(known)):
                pods[client] = pod
        dead = self._cluster.faults.dead_nodes
        return {
            client: pod
            for client, pod in pods.items()
            if phase(pod) == "Running" and not is_going(pod) and pod["spec"].get("nodeName") not in dead
        }

    def _missing(self) -> tuple[int, ...]:
        return tuple(sorted(set(range(self.plan.members)) - self._accepted().keys()))

    # -- what it writes

    def _measured(self, key: TrialKey) -> tuple[str, Trial]:
        numbers, verdict = _numbers(self.plan.clients), self._all.knobs.verdict
        finding = Finding(reason="LowOverlap", verdict=verdict, message="as it was told")
        return key.point, self._trial(
            key,
            outcome=Outcome.MEASURED,
            verdict=verdict,
            findings=() if verdict is Verdict.VALID else (finding,),
            window=numbers.window,
            operations=numbers.operations,
            hosts=numbers.hosts,
            slowest=numbers.slowest,
        )

    def _aborted(self, key: TrialKey, reason: AbortReason) -> tuple[str, Trial]:
        abort = Abort(reason=reason, message="it was aborted")
        return key.point, self._trial(key, outcome=Outcome.ABORTED, verdict=Verdict.INVALID, abort=abort)

    def _trial(self, key: TrialKey, **fields: Any) -> Trial:
        offer, probe = self._ledger().offer(key), None
        if offer is not None and fields["outcome"] is Outcome.MEASURED:
            outcome = ProbeOutcome.MET if offer.load < LINE else ProbeOutcome.LATE
            probe = Probe(offered=offer.load, achieved=offer.load, depth_full_percent=0, outcome=outcome)
        elif offer is not None:
            probe = probe_of(offer)
        return Trial(
            pass_number=key.pass_number,
            attempt=key.attempt,
            epoch=self.epoch,
            clients=tuple(range(self.plan.clients)),
            started_at=self._cluster.now.isoformat(),
            finished_at=self._cluster.now.isoformat(),
            probe=probe,
            **fields,
        )

    def _noted(self) -> TrialKey | None:
        for point, result in self._results.items():
            if note := result.get("status", {}).get("inFlight"):
                return TrialKey(point=point, pass_number=note["passNumber"], attempt=note["attempt"])
        return None

    def _record(self, ledger: Ledger, recorded: tuple[str, Trial]) -> None:
        point, trial = recorded
        ledger.add(point, trial)
        environment = Environment.model_validate({"fio": "3.39", "nodes": ["node-0", "node-1"]})
        status = ledger.status(point, environment)
        document = status.model_dump(mode="json", exclude_none=True)
        planned = most_trials(self.plan, self.plan.point(point))
        display = result_display(status, planned, self.plan.point(point).line)
        document["display"] = display.model_dump(mode="json", exclude_none=True)

        def change(new: Document) -> None:
            new["status"] = document

        self._cluster.edit(self._results[point], change)
        ResultStatus.model_validate({key: value for key, value in document.items() if key != "display"})

    def _publish(self, ledger: Ledger, *, in_flight: TrialKey | None = None, **fields: Any) -> None:
        jobs = (job for job in self._cluster.of_run("Job", self.uid) if client_of(job) is None)
        # A pod on a node that was gone may outlive its Job.
        created = datetime.fromisoformat(next(jobs, self._pod)["metadata"]["creationTimestamp"])
        current = None
        if in_flight is not None:
            begins, clients = self._cluster.now.timestamp(), tuple(range(self.plan.clients))
            words = self.plan.point(in_flight.point).label
            current = CurrentTrial(key=in_flight, label=words, clients=clients, starts_at=begins, ends_at=begins + 5)
        state = RunState(
            epoch=self.epoch,
            elapsed_seconds=max((self._cluster.now - created).total_seconds(), 0.0),
            gathered=self._gathered(),
            trials_done=ledger.done,
            trials_total=ledger.total,
            in_flight=in_flight,
            current=current,
            **fields,
        )
        text = state.model_dump_json()
        self._cluster.edit(self._maps["state"], lambda new: new["data"].update({STATE_FILE: text}))


def _attempt(pod: Document) -> int:
    return int(label(pod, naming.LABEL_ATTEMPT))


_load_plan = cache(load_plan)


@cache
def _numbers(clients: int) -> TrialNumbers:
    facts = TrialFacts(
        clients=tuple(range(clients)), runtime_seconds=4, ramp_seconds=1, t0_nanoseconds=EPOCH, windowed=True
    )
    return measure_round(facts, {client: make_document(client, EPOCH) for client in range(clients)})
