"""Sweep expansion: a workload becomes one point per combination of axis values."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil

from plimsoll.api.environment import PlatformEnvironment
from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.line import MOST_PROBES, MOST_STORM_PROBES, STORM_SUFFIX
from plimsoll.api.run import MAX_TIMEOUT_SECONDS, BenchmarkRun, Disturbance
from plimsoll.measure.text import size_text
from plimsoll.plan.document import MAX_POINTS, Plan, Point, RunIdentity, ceph_target
from plimsoll.plan.refusals import at_load, contradictions, limited, search_settings
from plimsoll.plan.sweep import Sweep, combinations, parse_sweep, shuffled
from plimsoll.tools.base import ASSUMED_WRITE_BYTES_PER_SECOND, StepKind
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind


def make_plan(
    run: BenchmarkRun, *, seed: int, runner_image: str = "", environment: PlatformEnvironment | None = None
) -> Plan:
    """Freeze a run; SpecError if a tool or parameter is unknown or impossible, or if there are more than 512 points."""
    points, spec = expand(run), run.spec
    tools = [TOOLS[point.tool] for point in points]
    has_data_sets = any(tool.target.is_data_set for tool in tools)
    # Some tools need the space of the data set.
    no_data_set = {"prefill": False, "per_trial": None} if any(tool.own_files for tool in tools) else {}
    return Plan(
        run=RunIdentity(name=run.metadata.name, namespace=run.metadata.namespace, uid=run.metadata.uid),
        runner_image=runner_image,
        seed=seed,
        clients=spec.clients.count,
        servers=spec.servers,
        repetitions=spec.repetitions,
        points=points,
        order=tuple(_order(points, seed, number) for number in range(spec.repetitions)),
        volume=spec.storage.volume if spec.storage and has_data_sets else None,
        ceph=ceph_target(run),
        network_bytes_per_second=spec.clients.network_bytes_per_second,
        environment=environment or PlatformEnvironment(),
        prepare=spec.prepare.model_copy(update=no_data_set),
        gates=spec.gates,
        limits=spec.limits,
        timeouts=spec.timeouts,
    )


def _order(points: Sequence[Point], seed: int, pass_number: int) -> tuple[int, ...]:
    """Return the order of a pass: shuffled, but a search for the storm line follows the one for the calm line."""
    places = {index: place for place, index in enumerate(shuffled(seed, pass_number=pass_number, points=len(points)))}
    # The storm line's point follows the calm line's among the points, too.
    return tuple(sorted(places, key=lambda index: (places[index - 1], 1) if points[index].calm else (places[index], 0)))


def expand(run: BenchmarkRun) -> tuple[Point, ...]:
    """Return the points of a run, workload by workload, the last axis varying fastest; SpecError has all problems."""
    sweeps: list[Sweep] = []
    problems: list[Problem] = []
    for index, workload in enumerate(run.spec.workloads):
        try:
            sweeps.append(parse_sweep(workload, index, run.spec))
        except SpecError as error:
            problems += error.problems
    # Counted before the expansion: a few long axes can yield millions of points.
    count = sum(sweep.points for sweep in sweeps)
    if count > MAX_POINTS:
        remedy = f"expands to {count} points, but a run has at most {MAX_POINTS}; shorten an axis or split the run"
        problems.append(Problem(field="spec.workloads", remedy=remedy))
    if problems:
        raise SpecError(problems)
    expanded = [(sweep, combinations(sweep)) for sweep in sweeps]
    if problems := list(contradictions(run.spec, expanded)):
        raise SpecError(problems)
    points: list[Point] = []
    for sweep, combined in expanded:
        workload, search = sweep.workload, sweep.workload.line
        for number, (clients, parameters) in enumerate(product(sweep.clients, combined)):
            document = parameters.model_dump(mode="json")
            varied = parameters.load_fields[search.vary] if search else ()
            point = Point(
                name=f"{workload.name}-{number:03d}",
                workload=workload.name,
                tool=sweep.tool.key,
                parameters={name: value for name, value in document.items() if name not in varied},
                label=parameters.search_label(search.vary) if search else parameters.label(),
                clients=clients,
                runtime_seconds=workload.runtime_seconds,
                ramp_seconds=workload.ramp_seconds,
                shares_file=parameters.shares_file,
                reads_next_client=parameters.reads_next_client,
                warm_caches=workload.caches == "Warm",
                line=limited(search, parameters, clients, sweep.timing) if search else None,
                disturb=workload.disturb,
            )
            points += _calm_and_storm(point, workload.disturb) if search and workload.disturb else [point]
    return tuple(points)


def _calm_and_storm(point: Point, disturbance: Disturbance) -> list[Point]:
    """Return the searches for the calm line, whose probes last `afterSeconds`, and for the storm line."""
    calm = point.model_copy(update={"disturb": None, "runtime_seconds": disturbance.after_seconds})
    label = f"{point.label}, {disturbance.osds.text}"
    return [calm, point.model_copy(update={"name": f"{point.name}{STORM_SUFFIX}", "label": label, "calm": point.name})]


TRIAL_OVERHEAD_SECONDS = 3  # barrier, start of the tool, collection and recording; `make bench` measures it


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The cost of a plan."""

    points: int
    trials: int  # the most trials of all points, without repeated attempts
    searches: int  # the points among these that are searches for the line, which often need fewer trials
    measuring_seconds: int  # warm-ups, runtimes, `prepare` steps and overhead. Certain but for attempts and searches.
    preparations: int  # how often the data sets are prepared: once, or before each trial. Without replaced clients.
    prefill_seconds: int  # of one preparation, at `ASSUMED_WRITE_BYTES_PER_SECOND` per client. A guess.
    precondition_seconds: int  # of one preparation: overwriting after the prefill. Certain.
    settle_seconds: int  # of one preparation: the pause after that
    data_bytes: int  # maximum size of all clients' data sets together, without objects
    stored_bytes: int | None  # with replicas or coding chunks, in a pool that is created for the run; None in others

    @property
    def total_seconds(self) -> int:
        """Seconds from the first prefill to the last result."""
        return self.measuring_seconds + self.preparations * self.preparation_seconds

    @property
    def preparation_seconds(self) -> int:
        return self.prefill_seconds + self.precondition_seconds + self.settle_seconds


def estimate(plan: Plan) -> Estimate:
    volume_bytes = plan.volume.size if plan.volume else 0
    is_filesystem = plan.volume is not None and plan.volume.mode == "Filesystem"
    filled = volume_bytes * plan.prepare.fill_percent // 100 if is_filesystem else volume_bytes
    prefilled = filled if plan.prepare.prefill else 0
    precondition = plan.prepare.precondition
    pool = plan.ceph.made if plan.ceph else None
    copies = Fraction(pool.replicated.size if pool and pool.replicated else 1)
    if pool and (chunks := pool.erasure_coded):
        copies = Fraction(chunks.data_chunks + chunks.coding_chunks, chunks.data_chunks)
    trials = sum(most_trials(plan, point) for point in plan.points)
    return Estimate(
        points=len(plan.points),
        trials=trials,
        searches=sum(point.line is not None for point in plan.points),
        measuring_seconds=sum(most_seconds(plan, point) for point in plan.points),
        preparations=trials if plan.renews_data_sets else 1,
        prefill_seconds=-(-prefilled // ASSUMED_WRITE_BYTES_PER_SECOND),
        precondition_seconds=precondition.seconds if precondition and plan.volume else 0,
        settle_seconds=plan.prepare.settle_seconds,
        data_bytes=plan.clients * filled,
        stored_bytes=ceil(plan.clients * filled * copies) if pool else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The bytes that all clients of a plan write, without replicas or coding chunks."""

    preparing: int  # in all prefills; certain but for replaced clients
    loading: int  # while preconditioning and in trials, without repeated attempts. A guess: see `estimate_writes`.

    @property
    def text(self) -> str:
        """Return both in words: `24 GiB to prefill and about 123 GiB in trials, ...`; empty if nothing is written."""
        rate = size_text(ASSUMED_WRITE_BYTES_PER_SECOND)
        prefill = f"{size_text(self.preparing)} to prefill" if self.preparing else ""
        loading = f"about {size_text(self.loading)} in trials, at {rate}/s of each client without a rate limit"
        return " and ".join(filter(None, (prefill, loading if self.loading else "")))


def estimate_writes(plan: Plan) -> Writes:
    """Return the bytes that a plan writes, with all probes at the highest load, and an assumed rate without a limit."""
    cost, loading = estimate(plan), Fraction(0)
    for point in plan.points:
        if TOOLS[point.tool].target in {TargetKind.PEER, TargetKind.API}:
            continue
        highest = at_load(point, point.line, search_settings(point, point.line).highest) if point.line else point
        parameters = highest.typed_parameters
        rate, seconds = parameters.most_written_per_second, parameters.writing_seconds(point.timing)
        trial = Fraction(ASSUMED_WRITE_BYTES_PER_SECOND if rate is None else rate) * seconds
        loading += trial * point.clients * most_trials(plan, point)
    overwriting = plan.clients * cost.precondition_seconds * ASSUMED_WRITE_BYTES_PER_SECOND
    prefilled = cost.data_bytes if plan.prepare.prefill else 0
    return Writes(preparing=cost.preparations * prefilled, loading=ceil(loading) + cost.preparations * overwriting)


def most_trials(plan: Plan, point: Point) -> int:
    """Return the trials of a point without repeated attempts: one in each pass, or the most probes of a search."""
    if point.line is None:
        return plan.repetitions
    return MOST_STORM_PROBES if point.calm else MOST_PROBES


def most_seconds(plan: Plan, point: Point) -> int:
    return most_trials(plan, point) * trial_seconds(point, plan.server_count)


def renewal_seconds(plan: Plan) -> int:
    """Return the seconds of the preparation before each trial; 0 if there is only one, before the first trial."""
    return estimate(plan).preparation_seconds if plan.renews_data_sets else 0


def round_count(point: Point, servers: int) -> int:
    return TOOLS[point.tool].cast_size(point.typed_parameters, point.clients, servers).rounds


def trial_seconds(point: Point, servers: int = 0) -> int:
    """Return the seconds from the start of one trial of a point to the start of the next trial."""
    parameters = point.typed_parameters
    has_preparation = StepKind.PREPARE in TOOLS[point.tool].steps(parameters)
    preparation = parameters.preparation_seconds(point.timing) if has_preparation else 0
    seconds = preparation + point.timing.total_seconds + TRIAL_OVERHEAD_SECONDS
    return round_count(point, servers) * seconds


def check_fits_deadline(plan: Plan) -> None:
    """Raise SpecError with the least `timeouts.totalSeconds` if the certain seconds, with all probes, do not fit."""
    cost = estimate(plan)
    needed = cost.total_seconds - cost.preparations * cost.prefill_seconds
    if needed > plan.timeouts.total_seconds:
        most = "at most " if cost.searches else ""
        renewed = ", each on a new data set," if plan.renews_data_sets else ""
        seconds = cost.preparations * cost.precondition_seconds
        overwriting = f" and {seconds} s of preconditioning" if seconds else ""
        longer = "raise it, " if needed <= MAX_TIMEOUT_SECONDS else ""
        fewer = "move workloads to another run" if cost.searches else "lower repetitions"
        remedy = (
            f"is less than the {needed} s that {most}{cost.trials} trials{renewed}{overwriting} take without prefill; "
            f"{longer}shorten runtimeSeconds or an axis, or {fewer}"
        )
        problem = Problem(field="spec.timeouts.totalSeconds", value=str(plan.timeouts.total_seconds), remedy=remedy)
        raise SpecError([problem])
