"""A run's Ceph cluster, as its conductor attends to it: prepares it, watches it, and asks it what it is."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from pydantic import JsonValue

from plimsoll.ceph.environment import Outputs, ceph_environment, osd_classes
from plimsoll.ceph.gate import gate_problems
from plimsoll.ceph.pools import parse_pools
from plimsoll.ceph.watch import ClusterSample, ClusterWatch
from plimsoll.conductor.ceph.cli import CommandError, Commands
from plimsoll.conductor.ceph.environment import ask, has_images
from plimsoll.conductor.ceph.flags import restore_scrubs
from plimsoll.conductor.ceph.prepare import prepare
from plimsoll.conductor.ceph.watch import Watcher
from plimsoll.conductor.gating import View
from plimsoll.measure.intake import TrialFacts
from plimsoll.plan.ceph import flags_object
from plimsoll.plan.document import CephTarget, Plan

_PAUSE_SECONDS = 3.0
_PERIOD_SECONDS = 5.0
_RELEASE_SECONDS = 15.0
"""A conductor that is asked to end has 30 s to do so, and an attempt to record before this."""

See = Callable[[View], None]

_log = logging.getLogger(__name__)


class Cluster:
    """What a conductor does with the Ceph cluster of its plan. `Session` is told through `see`, and decides."""

    def __init__(
        self,
        plan: Plan,
        target: CephTarget,
        commands: Commands,
        *,
        pause_seconds: float = _PAUSE_SECONDS,
        period_seconds: float = _PERIOD_SECONDS,
        release_seconds: float = _RELEASE_SECONDS,
    ) -> None:
        """Attend to the cluster `target` of a plan.

        While it is not ready it is tried again after `pause_seconds`, later it is looked at every `period_seconds`.
        `release` takes `release_seconds` at most.
        """
        self._pause, self._period, self._release = pause_seconds, period_seconds, release_seconds
        self.required = plan.gates.ceph_health == "Required"
        self._plan = plan
        self._target = target
        self._commands = commands
        self._accepted = frozenset(plan.gates.accepted_health_checks)
        template = ClusterWatch(samples=(), pools=target.pools, accepted_checks=self._accepted, required=self.required)
        self._watcher = Watcher(commands, template)
        self._outputs: Outputs | None = None
        self._osd_classes: dict[int, str] = {}
        self._environments: dict[frozenset[str], dict[str, JsonValue]] = {}

    async def attend(self, see: See) -> None:
        """Prepare what the run needs, then look at the cluster for ever; ends by being cancelled only."""
        await self._prepare(see)
        while True:
            sample = await self._watcher.look()
            see(self._view(sample))
            await asyncio.sleep(self._period)

    def begin(self) -> None:
        """Note that a trial begins."""
        self._watcher.begin()

    async def end(self, facts: TrialFacts, see: See) -> TrialFacts:
        """Look once more at the end of a trial, and add what was seen since it began to its facts."""
        watch = await self._watcher.end()
        see(self._view(watch.samples[-1]))
        return replace(facts, cluster=watch, osd_classes=self._osd_classes)

    async def release(self) -> None:
        """Let Ceph scrub the pools again, because nobody measures them any more: their storage may be kept for long.

        A conductor that goes on later pauses scrubs anew. What fails here is left to the teardown, for which the note
        stays until all is done. Not to be called while `attend` goes on.
        """
        if not self._plan.gates.pause_scrub:
            return
        try:
            async with asyncio.timeout(self._release):
                found = parse_pools(await self._commands.ceph("osd", "pool", "ls", "detail"))
                pools = [found[name] for name in self._target.pools if name in found]
                if pools and pools[0].name == self._target.pool:
                    await restore_scrubs(self._commands, note=flags_object(self._plan.run.uid), pools=pools)
        except TimeoutError:
            _log.warning("scrubs stay paused until the run is removed: Ceph did not answer in %g s", self._release)
        except (CommandError, ValueError) as error:
            _log.warning("scrubs stay paused until the run is removed: %s", error)

    def environment(self, nodes: frozenset[str]) -> dict[str, JsonValue]:
        """Return what stands in the results' environment, if the clients are on those nodes; empty if not known yet."""
        if self._outputs is None:
            return {}
        if nodes not in self._environments:
            self._environments = {nodes: self._describe(self._outputs, nodes)}
        return self._environments[nodes]

    async def _prepare(self, see: See) -> None:
        told: set[str] = set()

        def say(progress: str) -> None:
            # Every pass repeats its first steps: what is shown meanwhile is why the last one was not enough.
            if progress not in told:
                told.add(progress)
                see(View(prepared=False, problems=(progress,)))

        said: tuple[str, ...] = ()
        while True:
            prepared = await prepare(self._commands, self._plan, self._target, say=say)
            if not prepared.problems:
                break
            if prepared.problems != said:
                said = prepared.problems
                _log.warning("the cluster is not ready: %s", "; ".join(said))
            see(View(prepared=False, problems=prepared.problems))
            await asyncio.sleep(self._pause)
        say("asking Ceph for its versions and settings")
        self._outputs = await ask(self._commands, self._plan, prepared.pools, prepared.osds)
        self._osd_classes = osd_classes(self._outputs)
        _log.info("the cluster is prepared")

    def _view(self, sample: ClusterSample) -> View:
        if sample.status is None:
            return View(prepared=True, problems=(sample.problem,))
        return View(prepared=True, problems=gate_problems(sample.status, accepted=self._accepted))

    def _describe(self, outputs: Outputs, nodes: frozenset[str]) -> dict[str, JsonValue]:
        access = "librbd" if has_images(self._plan) else "PVC" if self._plan.volume else "rados"
        return ceph_environment(outputs, pools=self._target.pools, access=access, client_nodes=nodes)
