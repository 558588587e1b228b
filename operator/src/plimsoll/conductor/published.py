"""The public state of a session, for everyone who watches the run."""

from collections.abc import Sequence
from itertools import chain

from plimsoll.api.names import Operation, RunPhase
from plimsoll.api.status import CurrentTrial, Live, LiveRate, Prefill, RunState, format_time
from plimsoll.conductor import phases
from plimsoll.conductor.attempt import Moment
from plimsoll.conductor.roster import Client, failures, names_of
from plimsoll.conductor.session import Session
from plimsoll.measure.text import first_few, numbered
from plimsoll.protocol.messages import AgentState

_LIVE_INTERVALS = 3  # a client without a report for this many intervals does not count for live rates


def run_state(session: Session, moment: Moment) -> RunState:
    missing = session.roster.missing(moment.seconds)
    attempt = session.phase.attempt if isinstance(session.phase, phases.InFlight) else None
    # Between two rounds, the clients gather as they do between attempts.
    begun = attempt or session.unfinished
    current = None
    # An attempt that is being recorded is over, and counted as done.
    if attempt and attempt.t0 and not isinstance(session.phase, phases.Recording):
        current = CurrentTrial(
            key=attempt.key,
            label=attempt.point.label,
            clients=attempt.clients,
            starts_at=attempt.t0 / 1e9,
            ends_at=attempt.ends_at / 1e9,
        )
    key = session.ledger.next_trial()
    search = session.ledger.search(key.point) if key else None
    written = [client.written for client in session.roster]
    phase, message = _shown(session, missing, moment)
    return RunState(
        epoch=session.epoch,
        phase=phase,
        message=message,
        registered=tuple(client.number for client in session.roster if client.number not in missing),
        missing=missing,
        gathered=session.start.gathered,
        prefill=Prefill(done_bytes=sum(done for done, _ in written), total_bytes=sum(total for _, total in written)),
        current=current,
        live=_live_rates(session, moment),
        in_flight=begun.key if begun else None,
        in_flight_since=begun.started_at if begun else "",
        in_flight_t0_nanoseconds=begun.first_t0 if begun else 0,
        osds=session.osds,
        elapsed_seconds=round(session.start.elapsed(moment.seconds), 3),
        trials_done=session.ledger.done,
        trials_total=session.ledger.total,
        probes_done=search.progress.line.probes if search else 0,
        failure=session.phase.failure if isinstance(session.phase, phases.Ended) else None,
    )


def _shown(session: Session, missing: Sequence[int], moment: Moment) -> tuple[RunPhase, str]:
    roster, prepare = session.roster, session.plan.prepare
    phase, message = RunPhase.MEASURING, ""
    match session.phase:
        case phases.Ended(phase=phase, failure=failure):
            message = failure.message if failure else ""
        case phases.Gathering():
            phase = RunPhase.GATHERING if missing else phase
            message = f"waiting for {numbered('client', missing)}" if missing else failures(roster)
        case phases.AwaitingWindow(opens=opens):
            phase = RunPhase.WAITING_FOR_WINDOW
            message = f"waiting until {format_time(opens)} for the next maintenance window that is long enough"
        case phases.Preparing():
            step = "prefilling" if prepare.prefill else "preparing"
            phase, message = RunPhase.PREPARING, f"{_purpose(session)}{_preparation(session.unprepared(), step)}"
        case phases.Settling():
            step = "prefill" if prepare.prefill else "preparation"
            phase = RunPhase.SETTLING
            message = f"{_purpose(session)}settling for {prepare.settle_seconds} s after the {step}"
        case phases.Gating():
            phase = RunPhase.GATHERING if missing or not session.gate.view.prepared else phase
            problems = first_few(session.gate.problems(moment.seconds), separator="; ")
            message = f"waiting for the cluster: {problems or 'it is ready'}"
        case phases.Staging(attempt=attempt):
            unready = attempt.unready
            steps = (client.message for client in unready if client.is_in(AgentState.STAGING) and client.message)
            step = next(steps, "writing the data that the trial reads")
            message = f"{step}: {names_of(unready)}" if unready else "all clients are staged"
        case phases.Dropping():
            message = f"dropping the caches of {first_few(session.phase.undropped_nodes)}"
        case phases.InFlight(attempt=attempt):
            search = session.ledger.search(attempt.key.point)
            is_recorded = isinstance(session.phase, phases.Recording)
            message = f"recording {attempt.key}" if is_recorded else search.message if search else ""
    return phase, message


def _purpose(session: Session) -> str:
    """Return the attempt that the clients prepare for; empty if they prepare for all of them."""
    key = session.ledger.next_trial() if session.plan.renews_data_sets else None
    return f"new data set for {key}: " if key else ""


def _preparation(unfinished: Sequence[Client], step: str) -> str:
    """Return the clients' current steps: `step` of a client without a message of its own."""
    others = [client for client in unfinished if client.is_in(AgentState.PREPARING) and client.message]
    silent = [client for client in unfinished if client not in others]
    # The clients' progress differs by a second or two, so one message is enough.
    steps = [(step, silent), (others[0].message if others else "", others)]
    messages = [f"{text}: {names_of(clients)}" for text, clients in steps if clients]
    return "; ".join(messages) or "prepared"


def _live_rates(session: Session, moment: Moment) -> Live | None:
    """Return the sum of the clients' newest rates; None if no tool runs, or none has reported any."""
    if not isinstance(session.phase, phases.Running):
        return None
    since = moment.seconds - _LIVE_INTERVALS * session.timings.live_seconds(session.plan.members)
    clients = session.roster.get(session.phase.attempt.round.loading)
    reported = [client.rates for client in clients if client.rates and client.rated_at >= since]
    if not reported:
        return None
    sums: dict[Operation, tuple[float, int]] = {}
    for rate in chain.from_iterable(reported):
        iops, size = sums.get(rate.operation, (0.0, 0))
        sums[rate.operation] = iops + rate.iops, size + rate.bytes_per_second
    rates = (LiveRate(operation=name, iops=iops, bytes_per_second=size) for name, (iops, size) in sums.items())
    return Live(clients=len(reported), rates=tuple(rates))
