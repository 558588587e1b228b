"""The conductor's decisions: a state machine without clock, network or files.

Inputs are what agents say (`register`, `report`, `post`), the passing of time (`advance`), a request to stop, and
the completion of an effect (`begun`, `judged`, `recorded`). Outputs are the order that each client is under and the
effects to perform, one at a time. Nothing is measured before its effect `Begin` is durable and nothing is forgotten
before its effect `Record` is, so a conductor can die at any point and its successor loses and doubles nothing.
"""

from plimsoll.api.names import AbortReason, FailureReason, Outcome, RunPhase, Verdict
from plimsoll.api.result import Abort, Trial
from plimsoll.api.state import Failure, RunState, TrialKey
from plimsoll.conductor import orders, reporting
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.phases import (
    Arming,
    Attempt,
    Begin,
    Beginning,
    Effect,
    Ended,
    Gathering,
    Judge,
    Judging,
    Phase,
    Preparing,
    Record,
    Recording,
    Running,
    Settling,
)
from plimsoll.conductor.roster import Client, RefusedError, Roster, choose
from plimsoll.conductor.timings import Moment, Timings
from plimsoll.measure.trial import TrialFacts, TrialNumbers
from plimsoll.plan.document import Plan
from plimsoll.protocol.messages import AgentState, Leave, Registration, Report, ResultPost, Wait
from plimsoll.tools.registry import TOOLS

_SECOND = 10**9


class Session:
    """One conductor process's part of a run."""

    def __init__(
        self, *, plan: Plan, ledger: Ledger, epoch: str, timings: Timings, before: RunState | None, moment: Moment
    ) -> None:
        """Begin, or go on where an earlier conductor stopped: `before` is the state it left.

        `ledger` holds what is recorded, and is kept up to date from here on.
        """
        self.plan = plan
        self.epoch = epoch
        self.timings = timings
        self.ledger = ledger
        self.roster = Roster(plan.clients, lost_after=timings.lost_after)
        self._effects: list[Effect] = []
        self._stopping = False
        self._started = moment.seconds - (before.elapsed_seconds if before else 0.0)
        self.phase: Phase = self._gathering(moment)
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
        self.roster.report(client, report)

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

    # -- what the shell has done ----------------------------------------------------------------------------------

    def take_effect(self) -> Effect | None:
        """Return the next effect to perform; None if there is none."""
        return self._effects.pop(0) if self._effects else None

    def begun(self, moment: Moment) -> None:
        """Go on: the attempt is noted as in flight. Its clients are chosen and armed."""
        if not isinstance(self.phase, Beginning):
            raise TypeError(self.phase)
        attempt = self.phase.attempt
        attempt.clients = choose(self.roster, attempt.point.clients)
        attempt.t0 = moment.wall + int(self._lead(attempt) * _SECOND)
        for client in self.roster.get(attempt.clients):
            client.give(orders.arm(self.plan, attempt, client.number))
        self.phase = Arming(attempt=attempt)

    def judged(self, numbers: TrialNumbers, moment: Moment) -> None:
        """Go on: the documents are merged."""
        if not isinstance(self.phase, Judging):
            raise TypeError(self.phase)
        attempt = self.phase.attempt
        trial = Trial(
            pass_number=attempt.key.pass_number,
            attempt=attempt.key.attempt,
            epoch=self.epoch,
            clients=attempt.clients,
            outcome=Outcome.MEASURED,
            started_at=attempt.started_at,
            finished_at=reporting.timestamp(moment.wall),
            verdict=numbers.verdict,
            findings=numbers.findings,
            window=numbers.window,
            stalls=numbers.stalls,
            operations=numbers.operations,
            hosts=numbers.hosts,
            slowest=numbers.slowest,
            warnings=numbers.warnings,
        )
        self._record(attempt, trial)

    def recorded(self, moment: Moment) -> None:
        """Go on: the attempt is stored for good."""
        self.phase = self._gathering(moment)

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
            case Preparing():
                return self._end_if_wanted(moment) or self._leave_preparing(self.phase, moment)
            case Settling():
                return self._end_if_wanted(moment) or self._leave_settling(self.phase, moment)
            case Arming():
                return self._abort_if_wanted(self.phase.attempt, moment) or self._leave_arming(self.phase, moment)
            case Running():
                return (
                    self._judge_if_complete(self.phase.attempt)
                    or self._abort_if_wanted(self.phase.attempt, moment)
                    or self._abort_if_undeliverable(self.phase.attempt, moment)
                    or self._abort_if_late(self.phase.attempt, moment)
                )
            case _:
                return False

    def _leave_gathering(self, phase: Gathering, moment: Moment) -> bool:
        key = self.ledger.next_trial()
        if key is None:
            # However late it is, and whoever asks to stop: everything is measured.
            return self._end(RunPhase.COMPLETE, None, moment)
        if self._end_if_wanted(moment):
            return True
        missing = self.roster.missing(moment.seconds)
        if missing or not all(client.is_quiet for client in self.roster):
            return self._fail_unready(phase.deadline, missing, moment)
        if self._unprepared():
            self.phase = Preparing()
            return True
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
        if self.plan.volume is None:
            return []
        return [client for client in self.roster if not client.prepared_bytes]

    def _fail_unready(self, deadline: float, missing: tuple[int, ...], moment: Moment) -> bool:
        """Give up on clients that did not come together in time; false while there is time."""
        if moment.seconds < deadline:
            return False
        message = reporting.why_not_ready(self.roster, missing, self.plan.timeouts.ready_seconds)
        return self._end(RunPhase.FAILED, Failure(reason=FailureReason.CLIENTS_NOT_READY, message=message), moment)

    def _leave_settling(self, phase: Settling, moment: Moment) -> bool:
        if moment.seconds < phase.until:
            return False
        self.phase = self._gathering(moment)
        return True

    def _leave_arming(self, phase: Arming, moment: Moment) -> bool:
        attempt = phase.attempt
        clients = self.roster.get(attempt.clients)
        failures = reporting.failures(clients)
        if failures:
            return self._abort(attempt, AbortReason.CLIENT_NOT_ARMED, failures, moment)
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
            network_bytes_per_second=self.plan.network_bytes_per_second,
        )
        self.phase = Judging(attempt=attempt)
        self._effects.append(Judge(facts=facts, documents=attempt.documents))
        return True

    def _abort_if_undeliverable(self, attempt: Attempt, moment: Moment) -> bool:
        """Abort an attempt of which a client says that its document was refused: it has no other."""
        failures = reporting.failures(self.roster.get(attempt.clients))
        return bool(failures) and self._abort(attempt, AbortReason.RESULT_REFUSED, failures, moment)

    def _abort_if_late(self, attempt: Attempt, moment: Moment) -> bool:
        waiting = [client for client in self.roster.get(attempt.clients) if client.number not in attempt.documents]
        grace = moment.wall > attempt.t0 + int(self.timings.start_grace * _SECOND)
        late = [
            client.number
            for client in waiting
            if client.is_in(AgentState.LATE) or (grace and not client.is_in(AgentState.RUNNING))
        ]
        if late:
            message = f"{reporting.names(late)} did not start at T0; starting late would skew the sum of all clients"
            return self._abort(attempt, AbortReason.LATE_CLIENT, message, moment)
        if moment.wall > attempt.ends_at + int(self.timings.overrun_grace * _SECOND):
            who = reporting.names([client.number for client in waiting])
            message = f"{who} sent no result {self.timings.overrun_grace:g} s after the end; is the storage stuck?"
            return self._abort(attempt, AbortReason.TOOL_OVERRAN, message, moment)
        return False

    # -- ends -----------------------------------------------------------------------------------------------------

    def _abort_if_wanted(self, attempt: Attempt, moment: Moment) -> bool:
        """Abort an attempt whose client is gone, or that the run has no more time for."""
        gone = [number for number in self._lost(attempt, moment) if number not in attempt.documents]
        if gone:
            message = f"{reporting.names(gone)} died, was replaced, or was not heard of for too long"
            return self._abort(attempt, AbortReason.CLIENT_LOST, message, moment)
        if self._stopping:
            return self._abort(attempt, AbortReason.INTERRUPTED, "the run was interrupted or suspended", moment)
        if self._is_out_of_time(moment):
            message = "the run's totalSeconds are over"
            return self._abort(attempt, AbortReason.DEADLINE_EXCEEDED, message, moment)
        return False

    def _lost(self, attempt: Attempt, moment: Moment) -> list[int]:
        """Return the clients of an attempt that are silent, or are a new process that knows nothing of it."""
        missing = set(self.roster.missing(moment.seconds)) & set(attempt.clients)
        replaced = {
            client.number for client in self.roster.get(attempt.clients) if not orders.is_of(client.order, attempt)
        }
        return sorted(missing | replaced)

    def _abort(self, attempt: Attempt, reason: AbortReason, message: str, moment: Moment) -> bool:
        for client in self.roster.get(attempt.clients):
            client.give(Wait())
        self._record(attempt, self._aborted(attempt, reason, message, moment))
        return True

    def _aborted(self, attempt: Attempt, reason: AbortReason, message: str, moment: Moment) -> Trial:
        return Trial(
            pass_number=attempt.key.pass_number,
            attempt=attempt.key.attempt,
            epoch=self.epoch,
            clients=attempt.clients,
            outcome=Outcome.ABORTED,
            started_at=attempt.started_at,
            finished_at=reporting.timestamp(moment.wall),
            abort=Abort(reason=reason, message=message),
            verdict=Verdict.INVALID,
        )

    def _record_orphan(self, key: TrialKey, started_at: str, moment: Moment) -> None:
        """Record the attempt that died with the conductor before this one."""
        attempt = Attempt(key=key, point=self.plan.point(key.point), started_at=started_at)
        message = "the conductor was restarted while this attempt was in flight"
        self._record(attempt, self._aborted(attempt, AbortReason.CONDUCTOR_RESTARTED, message, moment))

    def _record(self, attempt: Attempt, trial: Trial) -> None:
        point = attempt.key.point
        self.ledger.add(point, trial)
        self.phase = Recording(attempt=attempt)
        environment = reporting.environment(self.roster)
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

    def _gathering(self, moment: Moment) -> Gathering:
        return Gathering(deadline=moment.seconds + self.plan.timeouts.ready_seconds)

    def _lead(self, attempt: Attempt) -> float:
        """Return how far ahead T0 lies; each further attempt gets more time to arm."""
        round_trip = max((2 * client.clock.error for client in self.roster if client.clock), default=0.0)
        timings = self.timings
        lead = max(timings.lead, timings.lead_per_round_trip * round_trip)
        return (lead + timings.lead_per_client * len(attempt.clients)) * (1 + attempt.key.attempt)
