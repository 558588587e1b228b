"""The conductor's decisions: a state machine without clock, network or files.

Inputs are what agents say (`register`, `report`, `post`), the passing of time (`advance`), a request to stop, and
the completion of an effect (`begun`, `judged`, `recorded`). Outputs are the order that each client is under and the
effects to perform, one at a time. Nothing is measured before its effect `Begin` is durable and nothing is forgotten
before its effect `Record` is, so a conductor can die at any point and its successor loses and doubles nothing.
"""

from plimsoll.api.names import AbortReason, FailureReason, RunPhase
from plimsoll.api.result import Trial
from plimsoll.api.state import Failure, RunState, TrialKey
from plimsoll.conductor import faults, orders, outcomes, reporting
from plimsoll.conductor.faults import Fault
from plimsoll.conductor.gating import Gate, View
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.phases import (
    Arming,
    Attempt,
    Begin,
    Beginning,
    Effect,
    Ended,
    Gathering,
    Gating,
    Judge,
    Judging,
    Phase,
    Preparing,
    Record,
    Recording,
    Running,
    Settling,
    Staging,
)
from plimsoll.conductor.roster import Client, RefusedError, Roster
from plimsoll.conductor.steps import has_step, lead_seconds, participants, staging_seconds
from plimsoll.conductor.timings import Moment, Timings
from plimsoll.measure.trial import TrialFacts, TrialNumbers
from plimsoll.plan.document import Plan
from plimsoll.protocol.messages import AgentState, Leave, Registration, Report, ResultPost, Wait
from plimsoll.tools.base import StepKind
from plimsoll.tools.registry import TOOLS

_SECOND = 10**9


class Session:
    """One conductor process's part of a run."""

    def __init__(
        self,
        *,
        plan: Plan,
        ledger: Ledger,
        epoch: str,
        timings: Timings,
        before: RunState | None,
        moment: Moment,
        gate: Gate | None = None,
    ) -> None:
        """Begin, or go on where an earlier conductor stopped: `before` is the state it left.

        `ledger` holds what is recorded, and is kept up to date from here on. Without `gate` no cluster is waited for.
        """
        self.plan = plan
        self.epoch = epoch
        self.timings = timings
        self.ledger = ledger
        self.gate = gate or Gate()
        self.describe: reporting.Describe = reporting.no_description
        self.roster = Roster(plan.clients, lost_after=timings.lost_after)
        self._effects: list[Effect] = []
        self._stopping = False
        self._started = moment.seconds - (before.elapsed_seconds if before else 0.0)
        self.phase: Phase = Gathering(deadline=moment.seconds + plan.timeouts.ready_seconds)
        if before is not None and before.in_flight is not None and not ledger.has(before.in_flight):
            self._record_orphan(before.in_flight, before.in_flight_since, moment)

    # -- what agents say ------------------------------------------------------------------------------------------

    def register(self, registration: Registration, moment: Moment) -> Client:
        """Take in an agent process; see `Roster.register`."""
        client = self.roster.register(registration, moment.seconds)
        if isinstance(self.phase, Ended) and self.phase.phase is not RunPhase.INTERRUPTED:
            client.give(Leave())
        return client

    def client(self, number: int, instance: str, epoch: str, moment: Moment) -> Client:
        """Return the client that makes a request.

        Raises:
            RefusedError: if it speaks of another conductor's epoch, or is not the process known for that client.

        """
        if epoch != self.epoch:
            raise RefusedError("StaleEpoch", "another conductor process is in charge; register again")
        return self.roster.known(number, instance, moment.seconds)

    def report(self, report: Report, moment: Moment) -> None:
        """Note what a client says of its order; see `client` for errors."""
        client = self.client(report.client, report.instance, report.epoch, moment)
        self.roster.report(client, report, moment.seconds)

    def post(self, post: ResultPost, moment: Moment) -> bool:
        """Take in a document; false if it is of no use any more: late, double, or of an earlier epoch.

        Raises:
            RefusedError: if another process has taken that client's place, or the document is another client's.

        """
        if post.document.client != post.client:
            message = (
                f"document.client is {post.document.client}, but it was posted as client {post.client}'s; "
                "a client posts its own document, or its I/O would count twice"
            )
            raise RefusedError("BadRequest", message)
        if post.epoch != self.epoch:
            return False
        client = self.roster.known(post.client, post.instance, moment.seconds)
        if not isinstance(self.phase, Running):
            return False
        attempt = self.phase.attempt
        if post.trial != attempt.key or post.client not in attempt.clients or post.client in attempt.documents:
            return False
        attempt.documents[post.client] = post.document
        client.give(Wait())
        return True

    # -- what the shell sees and has done -----------------------------------------------------------------------------

    def see(self, view: View, moment: Moment) -> None:
        """Take in a look at the cluster; between two trials there should be one every few seconds."""
        self.gate.see(view, moment.seconds)

    def take_effect(self) -> Effect | None:
        """Return the next effect to perform; None if there is none."""
        return self._effects.pop(0) if self._effects else None

    def begun(self, moment: Moment) -> None:
        """Go on: the attempt is noted as in flight. Its clients are chosen, and staged or armed."""
        if not isinstance(self.phase, Beginning):
            raise TypeError(self.phase)
        attempt = self.phase.attempt
        attempt.clients = participants(attempt.point, self.roster)
        if not has_step(attempt.point, StepKind.PREPARE):
            self._arm(attempt, moment)
            return
        for client in self.roster.get(attempt.clients):
            client.give(orders.stage(self.plan, attempt, client.number))
        deadline = moment.seconds + staging_seconds(attempt.point, self.timings)
        self.phase = Staging(attempt=attempt, deadline=deadline)

    def judged(self, numbers: TrialNumbers, moment: Moment) -> None:
        """Go on: the documents are merged."""
        if not isinstance(self.phase, Judging):
            raise TypeError(self.phase)
        attempt = self.phase.attempt
        self._record(attempt, outcomes.measured(attempt, numbers, epoch=self.epoch, moment=moment))

    def recorded(self, moment: Moment) -> None:
        """Go on: the attempt is stored for good."""
        self._gather(moment)

    def stop(self) -> None:
        """Ask the session to end as soon as what is in flight is recorded as interrupted."""
        self._stopping = True

    # -- the passing of time --------------------------------------------------------------------------------------

    def advance(self, moment: Moment) -> None:
        """Do what the present situation calls for, until nothing more is to be done now."""
        while self._advance(moment):
            pass

    def is_over(self, moment: Moment) -> bool:
        """Tell whether the session has ended and its agents know it, or had their time to."""
        if not isinstance(self.phase, Ended):
            return False
        gone = {client.number for client in self.roster if client.is_quiet or client.is_in(AgentState.LEAVING)}
        present = set(range(self.plan.clients)) - set(self.roster.missing(moment.seconds))
        return present <= gone or moment.seconds - self.phase.since > self.timings.linger

    def elapsed(self, moment: Moment) -> float:
        """Return the seconds that the run has been active, over all its conductors."""
        return moment.seconds - self._started

    def _advance(self, moment: Moment) -> bool:
        """Make one transition; false if there is none to make."""
        match self.phase:
            case Gathering():
                return self._leave_gathering(self.phase, moment)
            case Preparing() | Settling() | Gating():
                return self._end_if_wanted(moment) or self._leave_waiting(self.phase, moment)
            case Staging(attempt=attempt) | Arming(attempt=attempt) | Running(attempt=attempt):
                # What is measured is kept, whatever happens to its clients now.
                over = self._judge_if_complete(attempt) or self._abort_if_wanted(attempt, moment)
                return over or self._leave_attempt(self.phase, moment)
            case _:
                return False

    def _leave_waiting(self, phase: Preparing | Settling | Gating, moment: Moment) -> bool:
        match phase:
            case Preparing():
                return self._leave_preparing(phase, moment)
            case Settling():
                return moment.seconds >= phase.until and self._gather(moment)
            case Gating():
                return self._leave_gating(phase, moment)

    def _leave_attempt(self, phase: Staging | Arming | Running, moment: Moment) -> bool:
        match phase:
            case Staging():
                return self._leave_staging(phase, moment)
            case Arming():
                return self._leave_arming(phase, moment)
            case Running():
                return self._leave_running(phase.attempt, moment)

    def _leave_gathering(self, phase: Gathering, moment: Moment) -> bool:
        key = self.ledger.next_trial()
        if key is None:
            # However late it is, and whoever asks to stop: everything is measured.
            return self._end(RunPhase.COMPLETE, None, moment)
        if self._end_if_wanted(moment):
            return True
        if not self.gate.is_prepared:
            return self._wait_for_cluster(moment)
        missing = self.roster.missing(moment.seconds)
        if missing or not all(client.is_quiet for client in self.roster):
            return self._fail_unready(phase.deadline, missing, moment)
        if self._unprepared():
            self.phase = Preparing()
        elif self.gate.problems(moment.seconds):
            self._wait_for_cluster(moment)
        else:
            attempt = Attempt(key=key, point=self.plan.point(key.point), started_at=reporting.timestamp(moment.wall))
            self.phase = Beginning(attempt=attempt)
            self._effects.append(Begin())
        return True

    def _leave_preparing(self, phase: Preparing, moment: Moment) -> bool:
        """Have everybody prefill, also a process that took another's place meanwhile."""
        message = reporting.failures(self.roster)
        if message:
            return self._end(RunPhase.FAILED, Failure(reason=FailureReason.PREPARATION_FAILED, message=message), moment)
        unprepared = self._unprepared()
        for client in unprepared:
            if client.is_quiet:
                client.give(orders.prepare(self.plan, client.number))
        missing = self.roster.missing(moment.seconds)
        if missing:
            phase.deadline = phase.deadline or moment.seconds + self.plan.timeouts.ready_seconds
            return self._fail_unready(phase.deadline, missing, moment)
        phase.deadline = None
        if unprepared:
            return False
        self.phase = Settling(until=moment.seconds + self.plan.prepare.settle_seconds)
        return True

    def _unprepared(self) -> list[Client]:
        return [client for client in self.roster if not client.prepared_bytes] if self.plan.volume else []

    def _fail_unready(self, deadline: float, missing: tuple[int, ...], moment: Moment) -> bool:
        """Give up on clients that did not come together in time; false while there is time."""
        if moment.seconds < deadline:
            return False
        message = reporting.why_not_ready(self.roster, missing, self.plan.timeouts.ready_seconds)
        return self._end(RunPhase.FAILED, Failure(reason=FailureReason.CLIENTS_NOT_READY, message=message), moment)

    def _wait_for_cluster(self, moment: Moment) -> bool:
        self.phase = Gating(deadline=moment.seconds + self.plan.timeouts.ready_seconds)
        return True

    def _leave_gating(self, phase: Gating, moment: Moment) -> bool:
        problems = self.gate.problems(moment.seconds)
        if problems and moment.seconds < phase.deadline:
            return False
        if problems:
            message = reporting.why_closed(problems, self.plan.timeouts.ready_seconds)
            failure = Failure(reason=FailureReason.CLUSTER_NOT_READY, message=message)
            return self._end(RunPhase.FAILED, failure, moment)
        # A client may have died meanwhile.
        return self._gather(moment)

    def _leave_staging(self, phase: Staging, moment: Moment) -> bool:
        attempt = phase.attempt
        clients = self.roster.get(attempt.clients)
        if clients and all(client.is_in(AgentState.STAGED) for client in clients):
            self._arm(attempt, moment)
            return True
        fault = faults.failed(attempt, self.roster, AbortReason.CLIENT_NOT_STAGED)
        return self._abort_if(attempt, fault or faults.unstaged(phase, self.roster, self.timings, moment), moment)

    def _arm(self, attempt: Attempt, moment: Moment) -> None:
        attempt.t0 = moment.wall + int(lead_seconds(attempt, self.roster, self.timings) * _SECOND)
        for client in self.roster.get(attempt.clients):
            client.give(orders.arm(self.plan, attempt, client.number))
        self.phase = Arming(attempt=attempt)

    def _leave_arming(self, phase: Arming, moment: Moment) -> bool:
        attempt = phase.attempt
        clients = self.roster.get(attempt.clients)
        if self._abort_if(attempt, faults.failed(attempt, self.roster, AbortReason.CLIENT_NOT_ARMED), moment):
            return True
        too_late = moment.wall >= attempt.t0 - int(self.timings.go_margin * _SECOND)
        unarmed = [client.number for client in clients if not client.is_in(AgentState.ARMED)]
        if unarmed and not too_late:
            return False
        if too_late:
            who = reporting.names(unarmed or attempt.clients)
            message = f"{who} did not say in time to be armed; no client did any I/O"
            return self._abort(attempt, AbortReason.CLIENT_NOT_ARMED, message, moment)
        for client in clients:
            client.give(orders.go(attempt))
        self.phase = Running(attempt=attempt)
        return True

    def _judge_if_complete(self, attempt: Attempt) -> bool:
        if set(attempt.documents) != set(attempt.clients):
            return False
        facts = TrialFacts(
            clients=attempt.clients,
            runtime_seconds=attempt.point.runtime_seconds,
            ramp_seconds=attempt.point.ramp_seconds,
            t0_nanoseconds=attempt.t0,
            windowed=TOOLS[attempt.point.tool].windowed,
            least_runtime_seconds=TOOLS[attempt.point.tool].least_runtime_seconds,
            network_bytes_per_second=self.plan.network_bytes_per_second,
        )
        self.phase = Judging(attempt=attempt)
        self._effects.append(Judge(facts=facts, documents=attempt.documents))
        return True

    def _leave_running(self, attempt: Attempt, moment: Moment) -> bool:
        """Abort an attempt that has no end, or of which a client says that its document was refused."""
        fault = faults.failed(attempt, self.roster, AbortReason.RESULT_REFUSED)
        return self._abort_if(attempt, fault or faults.late(attempt, self.roster, self.timings, moment), moment)

    # -- ends -----------------------------------------------------------------------------------------------------

    def _abort_if_wanted(self, attempt: Attempt, moment: Moment) -> bool:
        """Abort an attempt whose client is gone, or that the run has no more time for."""
        if self._abort_if(attempt, faults.lost(attempt, self.roster, moment), moment):
            return True
        if self._stopping:
            return self._abort(attempt, AbortReason.INTERRUPTED, "the run was interrupted or suspended", moment)
        if self._is_out_of_time(moment):
            message = "the run's totalSeconds are over"
            return self._abort(attempt, AbortReason.DEADLINE_EXCEEDED, message, moment)
        return False

    def _abort_if(self, attempt: Attempt, fault: Fault | None, moment: Moment) -> bool:
        return fault is not None and self._abort(attempt, fault.reason, fault.message, moment)

    def _abort(self, attempt: Attempt, reason: AbortReason, message: str, moment: Moment) -> bool:
        for client in self.roster.get(attempt.clients):
            client.give(Wait())
        self._record(attempt, outcomes.aborted(attempt, reason, message, epoch=self.epoch, moment=moment))
        return True

    def _record_orphan(self, key: TrialKey, started_at: str, moment: Moment) -> None:
        """Record the attempt that died with the conductor before this one."""
        attempt = Attempt(key=key, point=self.plan.point(key.point), started_at=started_at)
        message = "the conductor was restarted while this attempt was in flight"
        reason = AbortReason.CONDUCTOR_RESTARTED
        self._record(attempt, outcomes.aborted(attempt, reason, message, epoch=self.epoch, moment=moment))

    def _record(self, attempt: Attempt, trial: Trial) -> None:
        point = attempt.key.point
        self.ledger.add(point, trial)
        self.phase = Recording(attempt=attempt)
        environment = reporting.environment(self.roster, self.describe)
        self._effects.append(Record(point=point, status=self.ledger.status(point, environment)))

    def _end_if_wanted(self, moment: Moment) -> bool:
        if self._stopping:
            return self._end(RunPhase.INTERRUPTED, None, moment)
        if self._is_out_of_time(moment):
            total = self.plan.timeouts.total_seconds
            message = f"not measured within timeouts.totalSeconds ({total} s); raise it or plan fewer trials"
            failure = Failure(reason=FailureReason.DEADLINE_EXCEEDED, message=message)
            return self._end(RunPhase.FAILED, failure, moment)
        return False

    def _end(self, phase: RunPhase, failure: Failure | None, moment: Moment) -> bool:
        """End. After an interruption the agents stay, with what they have prepared: another conductor may come."""
        for client in self.roster:
            client.give(Wait() if phase is RunPhase.INTERRUPTED else Leave())
        self.phase = Ended(phase=phase, failure=failure, since=moment.seconds)
        return True

    def _is_out_of_time(self, moment: Moment) -> bool:
        return self.elapsed(moment) > self.plan.timeouts.total_seconds

    def _gather(self, moment: Moment) -> bool:
        self.phase = Gathering(deadline=moment.seconds + self.plan.timeouts.ready_seconds)
        return True
