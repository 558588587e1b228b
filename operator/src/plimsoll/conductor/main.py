"""One conductor process: drives a session with its server, its sink and its cluster."""

import asyncio
import logging
import resource
import signal
import ssl
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.api.names import FailureReason, RunPhase
from plimsoll.api.status import RunState
from plimsoll.conductor import phases
from plimsoll.conductor.attempt import Timings
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.published import run_state
from plimsoll.conductor.server import Rendezvous, exposing, moment
from plimsoll.conductor.session import Session
from plimsoll.conductor.sink import Sink
from plimsoll.measure.trial import measure_round
from plimsoll.net.listener import Listener, ListenerLimits, serving_requests
from plimsoll.plan.document import Plan

if TYPE_CHECKING:
    from plimsoll.conductor.ceph.watch import CephCluster

EXIT_COMPLETE = 0  # every planned trial is recorded
EXIT_INTERRUPTED = 3  # stopped on request; a later conductor continues
# Failures that a restart of the conductor would not fix.
EXIT_OF_FAILURE = {reason: code for code, reason in enumerate(FailureReason, 10)}
_TICK_SECONDS = 0.1
_OTHER_STRANGERS = 128
_STRANGER_SECONDS = 10.0  # an agent authenticates with its first request after the handshake
_IDLE_SECONDS = 30.0  # longer than an agent keeps an idle connection, so that it never uses a closed one

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """The conductor's address and credentials."""

    host: str
    port: int
    tls: ssl.SSLContext
    token_key: bytes = field(repr=False)
    # File with the token for the helpers that drop caches; None if agents drop them themselves.
    caches_token: Path | None = None


async def conduct(
    *,
    plan: Plan,
    sink: Sink,
    listen: Listen,
    timings: Timings | None = None,
    epoch: str | None = None,
    cluster: "CephCluster | None" = None,
    metrics_port: int | None = None,
    job: str = "",
) -> phases.Ended:
    """Measure the missing trials of a plan, on `cluster` if it is one of Ceph, and return how the conductor ended.

    SIGTERM and SIGINT end it once the trial in flight is recorded as interrupted. See `Session` for `epoch` and `job`.
    """
    # Every agent holds two connections; the limit of open files is usually 1024.
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    timings, stored, gate = timings or Timings(), await sink.load(), None
    if cluster:
        gate = phases.Gate(watched=True, required=cluster.required, fresh_seconds=timings.gate_fresh)
    session = Session(
        plan=plan,
        ledger=Ledger(plan, stored.trials, stored.matrices, stored.ended),
        epoch=epoch or str(uuid.uuid4()),
        timings=timings,
        before=stored.state,
        moment=moment(),
        gate=gate,
        job=job,
    )
    if cluster is not None:
        session.describe = lambda: cluster.environment
        cluster.osds = session.osds
    driver = _Driver(session, sink, cluster, listen.caches_token)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, driver.stop)
    # All clients may connect at the same time, as before a trial.
    limits = ListenerLimits(strangers=plan.members + _OTHER_STRANGERS, stranger_seconds=_STRANGER_SECONDS)
    listener = Listener(limits, tls=listen.tls)
    rendezvous = Rendezvous(session, token_key=listen.token_key, on_input=driver.inputs.set, know=listener.know)
    application, host, port = rendezvous.application(), listen.host, listen.port
    async with serving_requests(application, listener, host, port, idle_seconds=_IDLE_SECONDS):
        async with exposing(session, metrics_port):
            await driver.drive_and_attend(rendezvous)
        # Not after an error: another conductor may already be in charge.
        if cluster is not None:
            await cluster.release()
    if not isinstance(session.phase, phases.Ended):
        raise TypeError(session.phase)
    return session.phase


def exit_code(ended: phases.Ended) -> int:
    if ended.failure is not None:
        return EXIT_OF_FAILURE[ended.failure.reason]
    return EXIT_INTERRUPTED if ended.phase is RunPhase.INTERRUPTED else EXIT_COMPLETE


class _Driver:
    """Drives a session: advances it, performs its effects, publishes its state."""

    def __init__(self, session: Session, sink: Sink, cluster: "CephCluster | None", caches_token: Path | None) -> None:
        self._session = session
        self._sink = sink
        self._cluster = cluster
        self._token = caches_token
        self.inputs = asyncio.Event()
        self._published: RunState | None = None
        self._published_at = float("-inf")

    def stop(self) -> None:
        self._session.stop()
        self.inputs.set()

    async def drive_and_attend(self, rendezvous: Rendezvous) -> None:
        """Drive the session until it is over, and attend to the cluster meanwhile, if there is one."""
        if self._cluster is None:
            await self.drive(rendezvous)
            return
        tasks = [asyncio.create_task(self.drive(rendezvous)), asyncio.create_task(self._cluster.attend(self._see))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def drive(self, rendezvous: Rendezvous) -> None:
        while not self._session.is_over(moment()):
            self.inputs.clear()
            self._session.advance(moment())
            rendezvous.wake()
            now = moment()
            state, last = run_state(self._session, now), self._published
            # A change of phase or trial is published at once, and progress at the sink's intervals.
            limit = 0.0
            if last is not None and (last.phase, last.current) == (state.phase, state.current):
                pulse = {"elapsed_seconds": last.elapsed_seconds, "live": last.live}
                is_unchanged = last == state.model_copy(update=pulse)
                limit = self._sink.pulse_seconds if is_unchanged else self._sink.progress_seconds
            if now.seconds - self._published_at >= limit:
                await self._publish()
            if await self._perform_one():
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self.inputs.wait()

    async def _perform_one(self) -> bool:
        """Perform the next effect; false if there is none."""
        session = self._session
        match session.take_effect():
            case None:
                return False
            case phases.Signal.BEGIN_ATTEMPT:
                if self._cluster is not None:
                    await self._cluster.begin()
                await self._publish()
                session.begun(moment())
            case phases.Signal.RELEASE:
                await self._publish()
                session.release(moment())
            case phases.Disturb(disturbance=disturbance, at=at):
                if self._cluster is not None:
                    self._cluster.disturb(disturbance, at)
            case phases.Signal.READ_TOKEN:
                # Kubernetes renews it in its file.
                token = "" if self._token is None else await asyncio.to_thread(self._token.read_text)
                session.authorized(token.strip())
            case phases.JudgeAttempt() as effect:
                await self._judge(effect)
            case phases.RecordAttempt() as effect:
                await self._record(effect)
        return True

    async def _judge(self, effect: phases.JudgeAttempt) -> None:
        facts = effect.facts
        if self._cluster is not None:
            facts = await self._cluster.end(facts, self._see)
        numbers = await asyncio.to_thread(measure_round, facts, effect.documents)
        self._session.judged(numbers, moment())

    async def _record(self, effect: phases.RecordAttempt) -> None:
        await self._sink.record(effect.point, effect.status)
        _log.info("recorded %s", effect.point)
        # An attempt that was aborted has not ended its disturbance.
        if self._cluster is not None:
            await self._cluster.calm(self._see)
        self._session.recorded(moment())

    def _see(self, view: phases.ClusterView) -> None:
        self._session.see(view, moment())
        self.inputs.set()

    async def _publish(self) -> None:
        now = moment()
        state = run_state(self._session, now)
        if self._published is None or self._published.phase is not state.phase:
            _log.info("%s %s", state.phase, state.message)
        await self._sink.publish(state)
        self._published, self._published_at = state, now.seconds
