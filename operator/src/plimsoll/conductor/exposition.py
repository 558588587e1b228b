"""Exposes a session to Prometheus."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from plimsoll.conductor.phases import Arming, Running, Staging
from plimsoll.conductor.publication import run_state
from plimsoll.conductor.server import moment
from plimsoll.conductor.session import Session
from plimsoll.conductor.timings import Moment
from plimsoll.metrics.live import LastTrial, LiveTrial, LiveView, Scrape
from plimsoll.metrics.server import AddressError, serving
from plimsoll.protocol.messages import AgentState

_log = logging.getLogger(__name__)


@asynccontextmanager
async def exposing(session: Session, port: int | None) -> AsyncIterator[None]:
    """Serve metrics on a port of all addresses within the context, if there is a port.

    An unavailable port is only logged: a measurement must not fail for lack of metrics, and a scrape shows it.
    """
    async with AsyncExitStack() as stack:
        if port is not None:
            try:
                address = f"http://:{port}/metrics"
                await stack.enter_async_context(serving(address, lambda: Scrape(view_of(session, moment()))))
            except AddressError as error:
                _log.error("the run continues without metrics: %s", error)
        yield


def view_of(session: Session, now: Moment) -> LiveView:
    """Return the state of a session for a scrape."""
    plan, ledger, gate = session.plan, session.ledger, session.gate
    measured = ledger.measured
    return LiveView(
        namespace=plan.run.namespace,
        run=plan.run.name,
        now=now.wall / 1e9,
        state=run_state(session, now),
        planned=plan.members,
        armed=_clients_in(session, AgentState.ARMED),
        measuring=_clients_in(session, AgentState.RUNNING),
        attempts=dict(ledger.added),
        trial=_trial(session),
        last=None
        if measured is None
        else LastTrial(workload=plan.point(measured[0]).workload, point=measured[0], operations=measured[1].operations),
        gate_open=not gate.problems(now.seconds) if gate.is_watched else None,
    )


def _clients_in(session: Session, state: AgentState) -> int:
    return sum(client.is_in(state) for client in session.roster)


def _trial(session: Session) -> LiveTrial | None:
    phase = session.phase
    if not isinstance(phase, Staging | Arming | Running):
        return None
    point = phase.attempt.point
    is_running = isinstance(phase, Running)
    return LiveTrial(workload=point.workload, label=point.label, key=phase.attempt.key, running=is_running)
