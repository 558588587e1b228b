"""The conductor's decisions: a state machine without clock, network or files.

Inputs are the agents' requests (`register`, `report`, `post`), the passing of time (`advance`), a request to stop, and
the completion of an effect (`begun`, `release`, `judged`, `recorded`). Outputs are each client's order, and effects to
perform one at a time. An attempt begins only after its effect `BEGIN_ATTEMPT` is durable, generates load only after
`RELEASE` is, and is forgotten only after `RecordAttempt` is. So a conductor can die at any time, and its successor
neither loses nor repeats anything.
"""

from collections.abc import Callable

from plimsoll.api.environment import Environment
from plimsoll.api.names import AbortReason, FailureReason, RunPhase
from plimsoll.api.result import Trial
from plimsoll.api.status import NO_OSDS, Failure, RunState, TrialKey, format_time
from plimsoll.conductor import phases
from plimsoll.conductor.attempt import (
    CONDUCTOR_RESTARTED,
    INTERRUPTED,
    SECOND,
    Attempt,
    Fault,
    Moment,
    Timings,
    preparation_order,
)
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.roster import Client, Roster, environment, failures, timestamp, why_not_ready
from plimsoll.measure.text import first_few
from plimsoll.measure.trial import TrialNumbers, trial_of_rounds
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import estimate, trial_seconds
from plimsoll.plan.refusals import at_load
from plimsoll.plan.windows import closing_time, next_start
from plimsoll.protocol import messages


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
        gate: phases.Gate | None = None,
        job: str = "",
    ) -> None:
        """Start a run, or continue it from the state that an earlier conductor stored, `before`, with its `ledger`.

        Without `gate` it waits for no cluster. `job` is the conductor's Job, or empty if the clients already exist.
        """
        self.plan = plan
        self.epoch = epoch
        self.timings = timings
        self.ledger = ledger
        self.gate = gate or phases.Gate()
        self.describe: Callable[[], Environment] = Environment  # describes the storage
        self.roster = Roster(plan.clients, servers=plan.server_count, lost_after=timings.lost_after)
        self._effects: list[phases.Effect] = []
        self._stopping = False
        self.unfinished: Attempt | None = None  # the attempt between two of its rounds
        self.osds = before.osds if before is not None else NO_OSDS  # the most that the run has seen in its cluster
        self.start = phases.Start(job=job, before=before, timeouts=plan.timeouts, now=moment.seconds)
        self.phase: phases.Phase = phases.Gathering(deadline=self.start.deadline(moment.seconds))
        if before is not None and before.in_flight is not None and not ledger.has(before.in_flight):
            # The previous conductor died with this attempt.
            attempt = self._new_attempt(before.in_flight, before.in_flight_since)
            attempt.first_t0 = before.in_flight_t0_nanoseconds
            self._record(attempt, attempt.aborted(CONDUCTOR_RESTARTED, moment))

    # -- requests of agents -----------------------------------------------------------------------------------------

    def register(self, registration: messages.Registration, moment: Moment, address: str = "") -> Client:
        """Register an agent process at an address; see `Roster.register`."""
        client = self.roster.register(registration, moment.seconds, address)
        if isinstance(self.phase, phases.Ended) and self.phase.phase is not RunPhase.INTERRUPTED:
            client.give(messages.LeaveOrder())
        return client

    def client(self, number: int, instance: str, epoch: str, moment: Moment) -> Client:
        """Return the client that sends a request; RefusedError for another epoch, or if the client was replaced."""
        if epoch != self.epoch:
            raise messages.RefusedError("StaleEpoch", "another conductor process is in charge; register again")
        return self.roster.registered(number, instance, moment.seconds)

    def report(self, report: messages.Report, moment: Moment) -> None:
        """Update a client's progress with its order; see `client` for errors."""
        client = self.client(report.client, report.instance, report.epoch, moment)
        self.roster.report(client, report, moment.seconds)

    def post(self, post: messages.ResultPost, moment: Moment) -> bool:
        """Accept a document; false if it is late, repeated, or of an earlier epoch. RefusedError: not the client's."""
        if post.document.client != post.client:
            raise messages.RefusedError(
                "BadRequest",
                f"document.client is {post.document.client}, but it was posted as client {post.client}'s; "
                "a client posts its own document, or its I/O would count twice",
            )
        if post.epoch != self.epoch:
            return False
        client = self.roster.registered(post.client, post.instance, moment.seconds)
        attempt = self.phase.attempt if isinstance(self.phase, phases.Running) else None
        if attempt is None or (post.trial, post.round_number) != (attempt.key, attempt.round_number):
            return False
        if post.client not in attempt.round.loading or post.client in attempt.documents:
            return False
        attempt.documents[post.client] = post.document
        client.give(messages.WaitOrder())
        return True

    # -- events and effects of the shell ----------------------------------------------------------------------------

    def see(self, view: phases.ClusterView, moment: Moment) -> None:
        """Update the view of the cluster, every few seconds between trials."""
        loads = isinstance(self.phase, phases.Preparing | phases.Settling | phases.InFlight)
        self.gate.see(view, moment.seconds, under_load=loads)
        self.osds = self.osds.most(view.osds)

    def take_effect(self) -> phases.Effect | None:
        """Return the next effect to perform, if any."""
        return self._effects.pop(0) if self._effects else None

    def begun(self, moment: Moment) -> None:
        """Choose the clients of the attempt, now stored as in flight, and stage or arm them."""
        if not isinstance(self.phase, phases.Beginning):
            raise TypeError(self.phase)
        attempt = self.phase.attempt
        attempt.choose_clients()
        if not attempt.needs_staging:
            self._drop_or_arm(attempt, moment)
            return
        attempt.give_staging()
        self.phase = phases.Staging(attempt=attempt, deadline=moment.seconds + attempt.staging_seconds)

    def authorized(self, token: str) -> None:
        """Have the clients drop caches with that token, which is empty without helpers; does nothing after an abort."""
        if isinstance(self.phase, phases.Dropping):
            self.phase.token = token

    def release(self, moment: Moment) -> None:
        """Give the armed clients `Go`: it is stored that they are about to start; does nothing after an abort."""
        if isinstance(self.phase, phases.Arming):
            self.phase.is_stored = True
            self.advance(moment)

    def judged(self, numbers: TrialNumbers, moment: Moment) -> None:
        """Record the judged attempt, or start its next round once all clients are present and quiet again."""
        if not isinstance(self.phase, phases.Judging):
            raise TypeError(self.phase)
        attempt = self.phase.attempt
        attempt.numbers.append(numbers)
        if attempt.cast is None or attempt.round_number + 1 == len(attempt.cast.rounds):
            self._record(attempt, attempt.measured(trial_of_rounds(attempt.numbers), moment))
            return
        attempt.round_number += 1
        attempt.documents = {}
        self.unfinished = attempt
        self._gather(moment)

    def recorded(self, moment: Moment) -> None:
        """Continue with the next trial: the attempt is stored."""
        self._gather(moment)

    def stop(self) -> None:
        """End the session as soon as the attempt in flight is recorded as interrupted."""
        self._stopping = True

    # -- the passing of time ----------------------------------------------------------------------------------------

    def advance(self, moment: Moment) -> None:
        """Make all transitions that are due."""
        is_due = True
        while is_due:
            match self.phase:
                case phases.Gathering():
                    is_due = self._leave_gathering(self.phase, moment)
                case phases.AwaitingWindow(opens=opens):
                    is_due = self._end_if_due(moment) or (moment.time >= opens and self._leave_awaiting(moment))
                case phases.Preparing():
                    is_due = self._end_if_due(moment) or self._leave_preparing(self.phase, moment)
                case phases.Settling(until=until):
                    is_due = self._end_if_due(moment) or (moment.seconds >= until and self._gather(moment))
                case phases.Gating():
                    is_due = self._end_if_due(moment) or self._leave_gating(self.phase, moment)
                case phases.Staging() | phases.Dropping() | phases.Arming() | phases.Running():
                    is_due = self._leave_attempt(self.phase, moment)
                case _:
                    is_due = False

    def is_over(self, moment: Moment) -> bool:
        """Whether the session has ended, and its agents know it or had time to."""
        if not isinstance(self.phase, phases.Ended):
            return False
        return self.roster.has_left(moment.seconds) or moment.seconds - self.phase.since > self.timings.linger

    def unprepared(self) -> list[Client]:
        """Return the clients that have to prepare their data sets before the next attempt or round; no servers."""
        if self.plan.volume is None:
            return []
        # With a new data set for each trial, also those whose tool has worked since, unless the trial has begun.
        renews = self.plan.renews_data_sets and self.unfinished is None
        clients = [client for client in self.roster if not client.serves]
        return [client for client in clients if not client.prepared_bytes or (renews and client.data_set_used)]

    def _leave_attempt(
        self, phase: phases.Staging | phases.Dropping | phases.Arming | phases.Running, moment: Moment
    ) -> bool:
        attempt = phase.attempt
        # A complete attempt counts, even if its clients are gone.
        if set(attempt.documents) == set(attempt.round.loading):
            self.roster.give(attempt.round.serving, messages.WaitOrder())
            self.phase = phases.Judging(attempt=attempt)
            self._effects.append(phases.JudgeAttempt(facts=attempt.facts, documents=attempt.documents))
            return True
        fault = self._danger or attempt.lost_clients(phase.ordered, moment) or self._ending(moment)
        if self._abort_if(attempt, fault, moment):
            return True
        match phase:
            case phases.Staging():
                if not attempt.unready:
                    return self._drop_or_arm(attempt, moment)
                fault = attempt.staging_fault(overdue=moment.seconds >= phase.deadline)
            case phases.Dropping():
                fault = phase.fault(moment)
                ceph = self.describe().ceph
                fsid = ceph.fsid if ceph else None
                if not fault and phase.is_dropped(fsid):
                    attempt.caches = phase.dropped_caches
                    return self._arm(attempt, moment)
                phase.give(fsid)
            case phases.Arming():
                return self._leave_arming(phase, moment)
            case phases.Running():
                fault = attempt.running_fault(moment)
        return self._abort_if(attempt, fault, moment)

    def _leave_gathering(self, phase: phases.Gathering, moment: Moment) -> bool:
        key = self.ledger.next_trial()
        if key is None:
            # Everything is measured: complete even after the deadline or a request to stop.
            return self._end(RunPhase.COMPLETE, None, moment)
        if self._end_if_due(moment):
            return True
        missing = self.start.check_registrations(phase, self.roster, moment.seconds)
        is_prepared = self.gate.view.prepared
        if is_prepared and (missing or not all(client.is_quiet for client in self.roster)):
            return self._fail_unready(phase.deadline, missing, moment)
        if is_prepared and self._await_window(key, moment):
            return True
        if is_prepared and self.unprepared():
            self.phase = phases.Preparing(closes=closing_time(self.timings.windows, moment.time))
        elif not is_prepared or self.gate.problems(moment.seconds):
            self.phase = phases.Gating(deadline=self.start.deadline(moment.seconds))
        else:
            attempt = self.unfinished or self._new_attempt(key, timestamp(moment.wall))
            self.phase = phases.Beginning(attempt=attempt)
            self.unfinished = None
            self._effects.append(phases.Signal.BEGIN_ATTEMPT)
        return True

    def _await_window(self, key: TrialKey, moment: Moment) -> bool:
        """Wait for a maintenance window in which the next trial can end; false if it may start now, or has begun."""
        if not self.timings.windows or self.unfinished is not None:
            return False
        seconds = trial_seconds(self.plan.point(key.point), self.plan.server_count)
        seconds += estimate(self.plan).preparation_seconds if self.unprepared() else 0
        opens = next_start(self.timings.windows, moment.time, seconds)
        if opens is None:
            message = (
                f"the next trial takes {seconds} s with its preparation, and no maintenance window is that long; "
                "lower runtimeSeconds, or ask the operator's administrator for longer maintenanceWindows"
            )
            return self._fail(FailureReason.DEADLINE_EXCEEDED, message, moment)
        if opens <= moment.time:
            return False
        self.start.pause(moment.seconds)
        self.phase = phases.AwaitingWindow(opens=opens)
        return True

    def _leave_awaiting(self, moment: Moment) -> bool:
        self.start.resume(moment.seconds)
        return self._gather(moment)

    def _leave_preparing(self, phase: phases.Preparing, moment: Moment) -> bool:
        """Have all clients prefill, including processes that replaced others meanwhile."""
        message = failures(self.roster)
        if message:
            return self._fail(FailureReason.PREPARATION_FAILED, message, moment)
        if phase.closes is not None and moment.time >= phase.closes:
            message = (
                f"the data sets were not prepared when the maintenance window closed at {format_time(phase.closes)}; "
                "lower clients.count or volume.size, or ask the operator's administrator for longer maintenanceWindows"
            )
            return self._fail(FailureReason.PREPARATION_FAILED, message, moment)
        unprepared = self.unprepared()
        for client in unprepared:
            if client.is_quiet:
                client.give(preparation_order(self.plan, client.number))
        missing = self.roster.missing(moment.seconds)
        if missing:
            phase.deadline = phase.deadline or moment.seconds + self.plan.timeouts.ready_seconds
            return self._fail_unready(phase.deadline, missing, moment)
        phase.deadline = None
        if unprepared:
            return False
        self.phase = phases.Settling(until=moment.seconds + self.plan.prepare.settle_seconds)
        return True

    def _fail_unready(self, deadline: float, missing: tuple[int, ...], moment: Moment) -> bool:
        """End the run if the clients were not ready in time; false before the deadline."""
        if moment.seconds < deadline:
            return False
        message = why_not_ready(self.roster, missing, self.plan.timeouts.ready_seconds)
        return self._fail(FailureReason.CLIENTS_NOT_READY, message, moment)

    def _leave_gating(self, phase: phases.Gating, moment: Moment) -> bool:
        self.start.check_registrations(phase, self.roster, moment.seconds)
        problems = self.gate.problems(moment.seconds)
        if not problems:
            # A client may have died in the meantime.
            return self._gather(moment)
        reasons = first_few(problems, separator="; ")
        if refusal := self.gate.view.refusal:
            return self._fail(refusal, reasons, moment)
        if moment.seconds < phase.deadline:
            return False
        limit = f"timeouts.readySeconds ({self.plan.timeouts.ready_seconds} s)"
        message = f"the cluster was not ready within {limit}: {reasons}; fix this or raise the limit"
        return self._fail(FailureReason.GATE_CLOSED, message, moment)

    def _new_attempt(self, key: TrialKey, started_at: str) -> Attempt:
        point, offer = self.plan.point(key.point), self.ledger.offer(key)
        return Attempt(
            plan=self.plan,
            roster=self.roster,
            timings=self.timings,
            epoch=self.epoch,
            key=key,
            point=at_load(point, offer.search, offer.load) if offer and offer.search else point,
            offer=offer,
            started_at=started_at,
        )

    def _drop_or_arm(self, attempt: Attempt, moment: Moment) -> bool:
        if not self.plan.prepare.drop_caches:
            return self._arm(attempt, moment)
        deadline = moment.seconds + self.timings.dropping + self.timings.dropping_grace
        self.phase = phases.Dropping(attempt=attempt, deadline=deadline, is_staged=attempt.needs_staging)
        self._effects.append(phases.Signal.READ_TOKEN)
        return True

    def _arm(self, attempt: Attempt, moment: Moment) -> bool:
        attempt.give_arming()
        deadline = moment.seconds + attempt.arming_seconds
        # A further round of an attempt is noted already.
        self.phase = phases.Arming(attempt=attempt, deadline=deadline, is_stored=attempt.first_t0 > 0)
        return True

    def _leave_arming(self, phase: phases.Arming, moment: Moment) -> bool:
        attempt = phase.attempt
        unarmed = [client for client in attempt.loading if not client.is_in(messages.AgentState.ARMED)]
        fault = attempt.arming_fault(unarmed, overdue=moment.seconds >= phase.deadline)
        if fault or unarmed:
            return self._abort_if(attempt, fault, moment)
        if not attempt.first_t0:
            attempt.first_t0 = moment.wall
            self._effects.append(phases.Signal.RELEASE)
        if not phase.is_stored:
            return False
        attempt.t0 = moment.wall + int(attempt.lead_seconds * SECOND)
        go = messages.GoOrder(trial=attempt.key, t0_nanoseconds=attempt.t0)
        self.roster.give(attempt.round.loading, go)
        if disturbance := attempt.point.disturb:
            seconds = attempt.point.ramp_seconds + disturbance.after_seconds
            self._effects.append(phases.Disturb(disturbance=disturbance, at=attempt.t0 + seconds * SECOND))
        self.phase = phases.Running(attempt=attempt)
        return True

    @property
    def _danger(self) -> Fault | None:
        if (danger := self.gate.danger) is None:
            return None
        return Fault(reason=AbortReason(danger.reason), message=danger.message)

    def _ending(self, moment: Moment) -> Fault | None:
        """Return the request to stop, or that the run has exceeded its time limit; None if it may continue."""
        limit = self.plan.timeouts.total_seconds
        if self._stopping or self.start.elapsed(moment.seconds) <= limit:
            return INTERRUPTED if self._stopping else None
        message = f"the run exceeded timeouts.totalSeconds ({limit} s)"
        return Fault(reason=AbortReason.DEADLINE_EXCEEDED, message=message)

    # -- ends -------------------------------------------------------------------------------------------------------

    def _abort_if(self, attempt: Attempt, fault: Fault | None, moment: Moment) -> bool:
        if fault is None:
            return False
        self.roster.give(attempt.clients, messages.WaitOrder())
        self._record(attempt, attempt.aborted(fault, moment))
        return True

    def _record(self, attempt: Attempt, trial: Trial) -> None:
        point = attempt.key.point
        self.ledger.add(point, trial, attempt.matrix)
        self.phase = phases.Recording(attempt=attempt)
        described = environment(self.roster, self.describe())
        self._effects.append(phases.RecordAttempt(point=point, status=self.ledger.status(point, described)))

    def _end_if_due(self, moment: Moment) -> bool:
        fault = self._danger or self._ending(moment)
        if fault and self.unfinished is not None:
            # The rounds before may have shown rates.
            attempt, self.unfinished = self.unfinished, None
            return self._abort_if(attempt, fault, moment)
        if self.gate.danger or self._stopping:
            phase = RunPhase.FAILED if self.gate.danger else RunPhase.INTERRUPTED
            return self._end(phase, self.gate.danger, moment)
        if fault:
            limit = self.plan.timeouts.total_seconds
            message = f"not measured within timeouts.totalSeconds ({limit} s); raise it or plan fewer trials"
            return self._fail(FailureReason.DEADLINE_EXCEEDED, message, moment)
        return False

    def _fail(self, reason: FailureReason, message: str, moment: Moment) -> bool:
        return self._end(RunPhase.FAILED, Failure(reason=reason, message=message), moment)

    def _end(self, phase: RunPhase, failure: Failure | None, moment: Moment) -> bool:
        """End the session. After an interruption the agents keep waiting, prepared, for another conductor."""
        for client in self.roster:
            client.give(messages.WaitOrder() if phase is RunPhase.INTERRUPTED else messages.LeaveOrder())
        self.phase = phases.Ended(phase=phase, failure=failure, since=moment.seconds)
        return True

    def _gather(self, moment: Moment) -> bool:
        self.phase = phases.Gathering(deadline=self.start.deadline(moment.seconds))
        return True
