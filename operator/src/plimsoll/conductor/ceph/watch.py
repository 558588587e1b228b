"""A run's Ceph cluster from its conductor's point of view: prepares it, watches it, and describes it."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace

from plimsoll.api.environment import Environment
from plimsoll.api.run import Disturbance
from plimsoll.api.status import NO_OSDS
from plimsoll.api.storage import DisturbedOsds
from plimsoll.ceph.disturbance import NotDisturbableError, check_now, chosen_osds, is_too_much
from plimsoll.ceph.environment import Outputs, ceph_environment, osd_classes, osd_memory_bytes, placement_of
from plimsoll.ceph.gate import gate_problems
from plimsoll.ceph.options import differing_options, reading_problems
from plimsoll.ceph.pools import parse_counters, parse_pools
from plimsoll.ceph.safety import FULL_QUOTA, POOL_FULL, risks
from plimsoll.ceph.watch import LAG, ClusterSample, ClusterWatch, OptionReading, Outage, Placement, parse_status
from plimsoll.conductor.ceph import options as osd_options
from plimsoll.conductor.ceph.commands import CommandError, Commands
from plimsoll.conductor.ceph.prepare import Prepared, ask, limit_fill, prepare, restore_scrubs
from plimsoll.conductor.phases import ClusterView
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.timeline import NANOSECONDS
from plimsoll.plan.document import CephTarget, Plan, flags_object, options_key

_PAUSE_SECONDS = 3.0
_PERIOD_SECONDS = 5.0
_RELEASE_SECONDS = 15.0  # a conductor has 30 s to end after SIGTERM, and first records the attempt in flight
_OSD_SECONDS = 2.0  # what giving back an OSD may take: monitors commit a change of their map every second
_SAMPLE_SECONDS = 12.0  # a cluster that takes longer is not healthy, and after SIGTERM a conductor has 30 s to end

See = Callable[[ClusterView], None]

_log = logging.getLogger(__name__)


class CephCluster:
    """The Ceph cluster of a plan. It calls `see` with each view of the cluster; `Session` decides."""

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
        """Attend to `target`: `pause_seconds` separate attempts to prepare it, `period_seconds` looks afterwards."""
        self._pause, self._period, self._release = pause_seconds, period_seconds, release_seconds
        self.required = plan.gates.ceph_health == "Required"
        self._plan = plan
        self._target = target
        self._commands = commands
        self._accepted = frozenset(plan.gates.accepted_health_checks)
        self._samples: list[ClusterSample] = []
        # The most that this conductor has seen, and those before it, since an OSD may get lost while there is none.
        self.osds = NO_OSDS
        self._is_measuring = False
        self._prepared = Prepared()
        self.environment = Environment()  # its part of the results' environment; empty before preparation
        self._osd_classes: dict[int, str] = {}
        self._osd_memory: int | None = None
        self._placement = Placement()
        self._readings: list[OptionReading] = []
        self._chosen: dict[DisturbedOsds, tuple[int, ...]] = {}  # the OSDs to take away
        self._outage: Outage | None = None  # of the trial in flight
        self._disturbing: asyncio.Task[None] | None = None
        self._giving_back = asyncio.Lock()
        self._missing = ""  # why OSDs are still away; empty if none should be given back
        self._full = frozenset[str]()  # the pools of the cluster that have reached their quotas

    async def attend(self, see: See) -> None:
        """Prepare the cluster, then watch it until cancelled."""
        try:
            await self._prepare(see)
            while True:
                sample = await self._look()
                view = self._view(sample)
                see(view)
                if self._outage_harms(sample):
                    _log.warning("more OSDs are missing than were taken away, which are given back at once")
                    await self.calm(see)
                # An earlier conductor that did not know yet that it was replaced may have taken OSDs away, too.
                is_theirs = bool(self._chosen and view.problems) and not self._is_measuring
                # Also while the trial goes on: others use the cluster, too.
                if (self._missing or is_theirs) and (self._disturbing is None or self._disturbing.done()):
                    await self._give_back()
                if self._readings and not self._is_measuring and reading_problems(self._readings[-1]):
                    # Options that differed are read again, so that the gate opens once they no longer do.
                    reading = await osd_options.read_options(self._commands, self._prepared.options)
                    # A trial may have begun meanwhile, with a reading of its own.
                    if not self._is_measuring:
                        self._readings = [reading]
                await asyncio.sleep(self._period)
        finally:
            if self._disturbing is not None:
                self._disturbing.cancel()
            await self._commands.close()

    def disturb(self, disturbance: Disturbance, at: int) -> None:
        """Take OSDs away from that time on, in Unix nanoseconds, for as long as they should be, or until `calm`."""
        self._outage = Outage(osds=self._chosen[disturbance.osds], action=disturbance.osds.action)
        self._disturbing = asyncio.create_task(self._disturb(self._outage, at, disturbance.for_seconds))

    async def calm(self, see: See) -> None:
        """End the disturbance of the trial, unless it has ended."""
        if self._disturbing is not None:
            self._disturbing.cancel()
            await asyncio.gather(self._disturbing, return_exceptions=True)
            self._disturbing = None
        if self._outage is not None and self._outage.start and not self._outage.end:
            await self._give_back()
            # The last view may be older than the disturbance.
            for sample in self._samples[-1:]:
                see(self._view(sample))

    async def _disturb(self, outage: Outage, at: int, seconds: float) -> None:
        await asyncio.sleep(max(0, at - time.time_ns()) / NANOSECONDS)
        self._outage = outage = replace(outage, start=time.time_ns())
        try:
            check_now(self._samples[-1].status, self.osds)
            key = options_key(self._plan.run.uid)
            osds = await osd_options.record_osds(self._commands, outage.osds, outage.action, key=key)
            # Nothing has changed so far, however long the record took.
            self._outage = outage = replace(outage, start=time.time_ns())
            await osd_options.take_away(self._commands, osds)
            self._outage = outage = replace(outage, away=time.time_ns())
            await asyncio.sleep(seconds)
        except (CommandError, ValueError, NotDisturbableError) as error:
            _log.warning("OSDs were not taken away: %s", error)
            self._outage = replace(outage, problem=str(error))
        else:
            try:
                self._outage = replace(outage, returned=await osd_options.returned_osds(self._commands, osds))
            except (CommandError, ValueError) as error:
                _log.warning("only the polls show whether the OSDs were still away: %s", error)
        await self._give_back()

    async def _give_back(self) -> None:
        async with self._giving_back:
            outage = self._outage
            if outage is not None and outage.end:
                return
            # The samples until now do not show it yet.
            end = time.time_ns()
            limit = max(self._release, _OSD_SECONDS * len(outage.osds) if outage else 0)
            try:
                async with asyncio.timeout(limit):
                    await osd_options.give_back(self._commands, key=options_key(self._plan.run.uid))
            except (CommandError, ValueError, TimeoutError) as error:
                reason = str(error) or f"Ceph did not answer in {limit:g} s"
                self._missing = f"OSDs that a trial took away are not given back: {reason}"
                _log.warning("%s; retrying", self._missing)
                return
            self._missing = ""
            if outage is not None:
                self._outage = replace(outage, end=end)

    async def begin(self) -> None:
        """Begin a trial: read the options that are set for the run, and keep all samples from the last one on."""
        if self._prepared.options:
            self._readings = [await osd_options.read_options(self._commands, self._prepared.options)]
        self._samples = self._samples[-1:]
        self._outage = None
        self._is_measuring = True

    async def end(self, facts: TrialFacts, see: See) -> TrialFacts:
        """Take the last sample of a trial, and return its facts with all samples since it began."""
        await self.calm(see)
        await self._look()
        if self._prepared.options:
            self._readings.append(await osd_options.read_options(self._commands, self._prepared.options))
        self._is_measuring = False
        # A concurrent look of `attend` may have ended out of order.
        samples = tuple(sorted(self._samples, key=lambda sample: sample.at))
        see(self._view(samples[-1]))
        watch = ClusterWatch(
            samples=samples,
            pools=self._target.pools,
            metadata_pools=self._target.metadata_pools,
            file_system=self._prepared.file_system,
            owns_file_system=self._target.file_system is not None and self._target.file_system.made is not None,
            accepted_checks=self._accepted,
            required=self.required,
            osds=self.osds,
            widest=self._prepared.widest,
            placement=self._placement,
            osd_memory_bytes=self._osd_memory,
            options=tuple(self._readings),
            outage=self._outage,
        )
        return replace(facts, cluster=watch, osd_classes=self._osd_classes)

    async def release(self) -> None:
        """Restore options and OSDs, lift quotas, and resume scrubs: the storage may be kept for long. Not in `attend`.

        A later conductor sets and pauses them again. On failure record and note are kept for the teardown.
        """
        uid = self._plan.run.uid
        try:
            async with asyncio.timeout(self._release):
                if self._target.has_record:
                    restoring = osd_options.restore_options(self._commands, key=options_key(uid))
                    await _try(restoring, "options of the OSDs remain set, or OSDs away,")
                await _try(self._lift_quota(), "the pool remains full")
                if self._plan.gates.pause_scrub:
                    await _try(self._resume_scrubs(), "scrubs remain paused")
        except TimeoutError:
            _log.warning("changes remain in Ceph until the run is removed: it did not answer in %g s", self._release)
        finally:
            await self._commands.close()

    async def _lift_quota(self) -> None:
        pool = self._target.pools[-1]
        # Writes that hang in a full pool keep a node from unmounting a volume.
        if self._target.made is not None and pool in await self._full_pools():
            await self._commands.ceph("osd", "pool", "set-quota", pool, "max_bytes", "0")

    async def _resume_scrubs(self) -> None:
        existing = parse_pools(await self._commands.ceph("osd", "pool", "ls", "detail"))
        pools = [existing[name] for name in self._target.pools_by_note if name in existing]
        if pools and pools[0].name == self._target.note_pool:
            await restore_scrubs(self._commands, note=flags_object(self._plan.run.uid), pools=pools)

    async def _prepare(self, see: See) -> None:
        shown, logged = set[str](), ""

        def report(progress: str) -> None:
            # Every pass repeats the first steps; meanwhile, the problems of the last pass remain visible.
            if progress not in shown:
                shown.add(progress)
                see(ClusterView(prepared=False, problems=(progress,)))

        while True:
            try:
                prepared = await prepare(self._commands, self._plan, self._target, report=report)
                report("querying Ceph's versions and settings")
                outputs = await ask(self._commands, self._plan, prepared.pools)
                # An earlier conductor has seen the cluster, and its clients may have written since.
                if self.osds == NO_OSDS:
                    await limit_fill(self._commands, self._plan, self._target, outputs)
                self._choose(outputs)
            except (osd_options.NotPreparedError, NotDisturbableError, CommandError, ValueError) as error:
                if logged != str(error):
                    logged = str(error)
                    _log.warning("the cluster is not ready: %s", logged)
                problems = error.problems if isinstance(error, osd_options.NotPreparedError) else (str(error),)
                see(ClusterView(prepared=False, problems=problems, refusal=getattr(error, "refusal", None)))
                await asyncio.sleep(self._pause)
            else:
                break
        self._prepared, pools = prepared, self._target.pools
        self._osd_classes = osd_classes(outputs)
        self._osd_memory = osd_memory_bytes(outputs, pools[-1])
        self._placement = placement_of(outputs, pools[-1])
        on_volumes = "CephFS" if self._target.file_system else "PVC"
        access = "librbd" if self._plan.has_images else on_volumes if self._plan.volume else "rados"
        self.environment = ceph_environment(outputs, pools=pools, access=access, options=prepared.options)
        _log.info("the cluster is prepared")

    def _choose(self, outputs: Outputs) -> None:
        """Choose the OSDs that trials take away; NotDisturbableError if none may be."""
        try:
            for osds in {point.disturb.osds for point in self._plan.points if point.disturb}:
                self._chosen[osds] = chosen_osds(
                    outputs,
                    pools=self._target.pools,
                    neighbours=self._target.neighbours,
                    count=osds.count,
                    fill_percent=self._plan.limits.fill_percent,
                )
        except (ValueError, LookupError) as error:
            raise osd_options.NotPreparedError([f"which OSDs hold the run's data is unknown: {error}"]) from error

    async def _look(self) -> ClusterSample:
        async def answer_of(*arguments: str) -> str | CommandError:
            try:
                return await self._commands.ceph(*arguments, limit_seconds=_SAMPLE_SECONDS)
            except CommandError as error:
                return error

        # Both time limits begin now, although the commands take turns.
        status, counters = await asyncio.gather(answer_of("status"), answer_of("df", "detail"))
        sample = ClusterSample(at=time.time_ns(), status=None, problem=str(status))
        if isinstance(status, str):
            try:
                parsed = parse_status(status)
                pools = {} if isinstance(counters, CommandError) else parse_counters(counters)
                sample = replace(sample, status=parsed, pools=pools, problem="" if pools else str(counters))
                self._full = await self._full_pools() if POOL_FULL in {*parsed.checks, *parsed.muted} else frozenset()
            except ValueError as error:
                sample = replace(sample, problem=str(error))
        # Between trials only the last sample matters: it may become the one before T0.
        self._samples = [*(self._samples if self._is_measuring else ()), sample]
        if sample.status is not None:
            self.osds = self.osds.most(sample.status.osds_seen)
        return sample

    def _view(self, sample: ClusterSample) -> ClusterView:
        reading = self._readings[-1] if self._readings else OptionReading()
        differing = differing_options(reading)
        if sample.status is None:
            return ClusterView(prepared=True, problems=(sample.problem,), differing_options=differing)
        own = self._full.intersection(self._target.pools)
        checks = {*sample.status.checks} - ({POOL_FULL} if own and own == self._full else set())
        problems = gate_problems(
            sample.status, accepted=self._accepted, file_system=self._prepared.file_system, most=self.osds
        )
        return ClusterView(
            prepared=True,
            problems=(*filter(None, (self._missing, self._returning(sample))), *problems, *reading_problems(reading)),
            differing_options=differing,
            osds=self.osds,
            risks=risks(checks, self._plan.gates.stop_on),
            full_pools=tuple(sorted(own)),
        )

    def _outage_harms(self, sample: ClusterSample) -> bool:
        outage = self._outage
        if outage is None or not outage.start or outage.end or sample.status is None:
            return False
        return is_too_much(sample.status, self.osds, outage)

    def _returning(self, sample: ClusterSample) -> str:
        """Return that a sample may show groups as they were before OSDs came back, which move again; empty if not."""
        if self._outage is None or not self._outage.end or sample.at >= self._outage.end + LAG:
            return ""
        return "OSDs came back a moment ago; wait until Ceph's status shows what that changed"

    async def _full_pools(self) -> frozenset[str]:
        """Return the pools that have reached their quotas; none if unknown."""
        try:
            answer = await self._commands.ceph("osd", "pool", "ls", "detail", limit_seconds=_SAMPLE_SECONDS)
            return frozenset(name for name, pool in parse_pools(answer).items() if FULL_QUOTA in pool.flags)
        except (CommandError, ValueError) as error:
            _log.warning("which pools are full is unknown: %s", error)
            return frozenset()


async def _try(step: Coroutine[object, object, None], consequence: str) -> None:
    """Run a step of the release; a failure is logged with its consequence."""
    try:
        await step
    except (CommandError, ValueError) as error:
        _log.warning("%s until the run is removed: %s", consequence, error)
