"""`plimsoll plan`: points, duration and capacity of a run, or the variants of a suite; of a file or in a cluster."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path

import click
import yaml
from pydantic import JsonValue
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from plimsoll.api.errors import SpecError
from plimsoll.api.line import Vary
from plimsoll.api.run import decode_run
from plimsoll.api.suite import BY_NAME, BenchmarkSuite
from plimsoll.cli import exit_on, options
from plimsoll.cli.cluster import ask, cluster_options
from plimsoll.cli.source import CONFIG_MAP, RUN, SUITE, InCluster, find, no_such_object
from plimsoll.cli.suite_rounds import read_suite
from plimsoll.cli.tables import Terminal, facts_table, fitted
from plimsoll.kube.port import ForbiddenError, Kube
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.ceph.rook_facts import cluster_name
from plimsoll.measure.hypotheses.decide import expectation
from plimsoll.measure.summary import MINIMUM_TRIALS
from plimsoll.measure.text import count_text, first_few, size_text
from plimsoll.plan import expand
from plimsoll.plan.document import PLAN_FILE, CephTarget, Plan, Point, load_plan
from plimsoll.plan.refusals import search_settings
from plimsoll.report.view import NONE, Column, Number
from plimsoll.suite.children import FieldChange, Turn, is_named_list, suite_digest, turns_of, variant_changes
from plimsoll.suite.rounds.observed import size_problem
from plimsoll.tools.base import ASSUMED_WRITE_BYTES_PER_SECOND


@click.command(short_help="Show the points, the time and the capacity of a run or a suite.")
@click.argument("source", metavar="FILE|-|RUN|bsuite/SUITE")
@options.document_option
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order; random by default. Not for a RUN.")
@cluster_options
def command(*, source: str, output: str, seed: int | None) -> None:
    """Show the points, the duration and the capacity of a BenchmarkRun, or the variants of a BenchmarkSuite.

    For a FILE, or - for standard input, before it is applied; or for a RUN in a cluster, NAME or NAMESPACE/NAME: the
    plan that was frozen when the run was admitted. For a suite it shows the variants, its runs in their order, and the
    time that a round takes. Every variant is checked as a run; an error names the field of the suite, and the variant.
    """
    place = options.STANDARD_INPUT if source == str(options.STANDARD_INPUT) else find(source)
    if isinstance(place, InCluster) and place.kind == SUITE:
        suite, _, _ = ask(place.access, lambda kube: read_suite(kube, place))
        show_suite_plan(Path(str(place)), suite, seed, output)
        return
    if isinstance(place, InCluster):
        if seed is not None:
            raise click.UsageError(f"--seed applies to a FILE or a suite; run {place} has its own seed")
        plan = ask(place.access, lambda kube: _frozen(kube, place))
    else:
        manifest = options.read_file(place)
        if isinstance(manifest, BenchmarkSuite):
            show_suite_plan(place, manifest, seed, output)
            return
        plan = options.freeze(place, manifest, seed)
    if output != options.TABLE:
        options.write_document(plan.model_dump(mode="json"), output)
        return
    columns: Sequence[Column[Point]] = (
        Column("Point", lambda point: point.name, folded=True),
        Column("Tool", lambda point: point.tool),
        Column("Parameters", lambda point: point.label, folded=True),
        Number("Clients", lambda point: f"{point.clients}/{plan.clients}"),
        Number("Ramp + run", lambda point: f"{point.ramp_seconds} + {point.runtime_seconds} s"),
    )
    console = Terminal()
    for part in (plan.run.name, fitted(columns, plan.points), "", _costs(plan)):
        console.print(part)


async def _frozen(kube: Kube, run: InCluster) -> Plan:
    """Return a run's plan; without a readable one, a plan from its specification, with a note."""
    document = await kube.get(RUN, run.name, run.namespace)
    if document is None:
        raise await no_such_object(kube, run)
    config_map, why = None, "it has no plan yet"
    try:
        config_map = await kube.get(CONFIG_MAP, naming.plan_config_map(run.name), run.namespace)
    except ForbiddenError as error:
        why = f"no right to read its plan ({error.reason})"
    with exit_on(SpecError, what=f"run {run} cannot be read: "):
        if config_map is not None:
            return load_plan(config_map["data"][PLAN_FILE])
        click.echo(f"Run {run}: {why}. This is a plan of its specification with a random seed and order.", err=True)
        return options.freeze(Path(str(run)), decode_run(dict(document)), None)


def _costs(plan: Plan) -> Table:
    cost = expand.estimate(plan)
    at_most = "at most " if cost.searches else ""
    limit = timedelta(seconds=plan.timeouts.total_seconds)
    rounds = {point.name: expand.round_count(point, plan.server_count) for point in plan.points}
    several = [f"{name}: {count}" for name, count in rounds.items() if count > 1]
    copies = (
        "without the copies that the storage keeps"
        if cost.stored_bytes is None
        else f"{size_text(cost.stored_bytes)} with replicas or coding chunks"
    )
    preparing = timedelta(seconds=cost.preparations * cost.preparation_seconds)
    prefill, servers = "none", ""
    if plan.prepare.prefill and plan.volume is not None:
        rate = size_text(ASSUMED_WRITE_BYTES_PER_SECOND)
        prefill = f"{timedelta(seconds=cost.prefill_seconds)} if every client writes {rate}/s"
    if plan.servers is not None:
        nodes = "".join(f" {name}={value}" for name, value in plan.servers.node_selector.items())
        servers = f"{plan.servers.count}, numbered after the clients, on {plan.servers.placement}{nodes}"
    counts = f"{cost.points}, each a search for the line"
    if cost.searches < cost.points:
        more = "1 more that is a search" if cost.searches == 1 else f"{cost.searches} more that are searches"
        searched = f", and {more} for the line in the first pass" if cost.searches else ""
        order = f"each in its own shuffled order (seed {plan.seed})"
        counts = f"{cost.points - cost.searches} in {plan.repetitions} passes, {order}{searched}"
    searches: list[str] = []
    for point in plan.points:
        if point.line is not None:
            settings, unit = search_settings(point, point.line), "IOPS" if point.line.vary is Vary.RATE else "in flight"
            loads = f"{settings.offered(point.line.start):,.0f} to {settings.highest:,.0f} {unit}"
            loads = f"{f'up to the line of {point.calm}' if point.calm else loads} in steps of {settings.step:,.0f}"
            most = timedelta(seconds=expand.most_seconds(plan, point))
            searches.append(f"{point.name}: {loads}, at most {expand.most_trials(plan, point)} probes in {most}")
    renewal = f"a new data set before each trial, {cost.preparations} times, {preparing} altogether"
    facts = (
        ("Ceph", clusters_text([plan])),
        ("Pool", _pool(plan.ceph) if plan.ceph else ""),
        ("Points", counts),
        ("Trials", f"{at_most}{cost.trials}, plus repeated attempts"),
        ("Searches", "\n".join(searches)),
        ("Servers", servers),
        ("Rounds", f"per trial, one after the other: {first_few(several, 8)}" if several else ""),
        ("Measuring", f"{at_most}{timedelta(seconds=cost.measuring_seconds)} without repeated attempts"),
        ("Prefill", prefill),
        ("Overwriting", f"{timedelta(seconds=cost.precondition_seconds)}" if cost.precondition_seconds else ""),
        ("Caches", "dropped on the clients' nodes before every trial" if plan.prepare.drop_caches else ""),
        ("Settling", f"{cost.settle_seconds} s"),
        ("Preparing", renewal if plan.renews_data_sets else ""),
        ("Total", f"{at_most}{timedelta(seconds=cost.total_seconds)} of at most {limit} (timeouts.totalSeconds)"),
        ("Writing", written_text([plan])),
        ("Capacity", f"{size_text(cost.data_bytes)} of data, {copies}" if cost.data_bytes else ""),
    )
    return facts_table(facts)


def _pool(target: CephTarget) -> str:
    file_system, made = target.file_system, target.made
    if made is not None:
        layout = _value(made.model_dump(mode="json", exclude_none=True))
        what = "file system" if file_system is not None else "pool"
        return f"{what} created for the run: {layout}"
    if file_system is not None:
        return f"{target.data_pool} of file system {file_system.name}, which exists already and is not removed"
    data = f", with the images' data in {target.data_pool}" if target.data_pool else ""
    return f"{target.pool}{data}, which exists already and is not removed"


ONLY_CLUSTER = "the only Rook cluster that its namespace may use"  # of a run that names none


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedVariant:
    name: str
    changes: Sequence[FieldChange]
    plan: Plan
    cost: expand.Estimate
    shared: Collection[str]  # the workloads of `spec.run`


def show_suite_plan(file: Path, suite: BenchmarkSuite, seed: int | None, output: str) -> None:
    """Print the plan of a suite as a table or a document; `file` is what errors name. Exits if it has no plan."""
    seed = options.chosen_seed(seed)
    changes, workloads = variant_changes(suite.spec), suite.spec.run.get(BY_NAME)
    shared = {str(workload["name"]) for workload in workloads} if is_named_list(workloads) else set()
    variants = {
        name: _PlannedVariant(name=name, changes=changes[name], plan=plan, cost=expand.estimate(plan), shared=shared)
        for name, plan in options.freeze_variants(file, suite, seed).items()
    }
    turns = turns_of(suite.spec, seed)
    if output != options.TABLE:
        document = {
            "name": suite.metadata.name,
            "digest": suite_digest(suite.spec),
            "seed": seed,
            "variants": [
                {
                    "name": variant.name,
                    "changes": [asdict(change) for change in variant.changes],
                    "seconds": variant.cost.total_seconds,
                    "plan": variant.plan.model_dump(mode="json"),
                }
                for variant in variants.values()
            ],
            "runs": [asdict(turn) for turn in turns],
        }
        options.write_document(document, output)
        return
    console = Terminal()
    for part in _view(suite, seed, variants, turns):
        console.print(part)


def _view(
    suite: BenchmarkSuite, seed: int, variants: Mapping[str, _PlannedVariant], turns: Sequence[Turn]
) -> Iterator[RenderableType]:
    spec = suite.spec
    yield Text(suite.metadata.name)
    yield fitted(_COLUMNS, [*variants.values()], remedy="-o json")
    yield ""
    repeats = [[*group] for _, group in groupby(turns, key=lambda turn: turn.repeat)]
    columns: Sequence[Column[list[Turn]]] = (
        Number("Repeat", lambda repeated: repeated[0].repeat),
        Column("Runs in their order", lambda repeated: ", ".join(turn.variant for turn in repeated), folded=True),
        Number("Time", lambda repeated: _time(_seconds(variants, repeated))),
    )
    yield fitted(columns, repeats)
    yield ""
    name = suite.metadata.name
    each = f"{count_text(len(spec.variants), 'variant')}, each {count_text(spec.repeat, 'time')}"
    plans = [variant.plan for variant in variants.values()]
    problem = size_problem(spec, plans)
    facts = (
        ("Runs", f"{len(turns)}, one at a time: {each}, in shuffled order (seed {seed})"),
        ("Evidence", evidence_text(suite)),
        ("Names", f"{name}-VARIANT-MINUTE-REPEAT, with the minute of the start since 1970; in a cluster they differ"),
        ("Ceph", clusters_text(plans)),
        ("Total", f"{_time(_seconds(variants, turns))} without repeated attempts"),
        ("Writing", written_text(plans, spec.repeat)),
        ("Invalid", f"in a cluster: {problem}" if problem else ""),
    )
    yield facts_table(facts)
    comparisons: dict[str, str] = {}
    for comparison in spec.comparisons:
        allow = comparison.allow
        allowed = f"tolerated: {allow.rate_percent} % less rate, {allow.latency_percent} % more latency"
        baseline, candidate = comparison.variants or ("its accepted rounds", "each variant")
        comparisons[comparison.name] = f"{candidate} against {baseline}; {allowed}"
    hypotheses = {hypothesis.name: expectation(hypothesis) for hypothesis in spec.hypotheses}
    for heading, texts in (("Comparisons", comparisons), ("Hypotheses", hypotheses)):
        if texts:
            yield Text(f"\n{heading}", style="bold")
        yield from (Text(f"{name}: {text}") for name, text in texts.items())


def evidence_text(suite: BenchmarkSuite) -> str:
    """Return what comparisons of variants lack with so few runs; empty if they lack nothing."""
    repeat, compares = suite.spec.repeat, any(comparison.variants for comparison in suite.spec.comparisons)
    if not compares or repeat >= MINIMUM_TRIALS:
        return ""
    return f"comparisons lack the noise between runs; set repeat to {MINIMUM_TRIALS} or more to include it"


def clusters_text(plans: Iterable[Plan]) -> str:
    """Return the Ceph clusters that plans measure, in words; empty if they measure other storage."""

    def text(target: CephTarget) -> str:
        monitors = f"monitors {', '.join(target.monitors)}" if target.monitors else ONLY_CLUSTER
        return cluster_name(target.rook) if target.rook else monitors

    return "; ".join(dict.fromkeys(text(plan.ceph) for plan in plans if plan.ceph))


def written_text(plans: Sequence[Plan], repeat: int = 1) -> str:
    """Return what plans write if each is measured `repeat` times, in words; empty if they only read."""
    writes = [expand.estimate_writes(plan) for plan in plans]
    preparing, loading = sum(each.preparing for each in writes), sum(each.loading for each in writes)
    return expand.Writes(preparing=repeat * preparing, loading=repeat * loading).text


def _changes(variant: _PlannedVariant) -> str:
    lines = []
    for change in variant.changes:
        kind, _, rest = change.path.partition(".")
        name = rest.partition(".")[0]
        points = [point for point in variant.plan.points if point.workload == name]
        if kind != BY_NAME or (points and name in variant.shared):
            removed = f"removed ({_value(change.before)})"
            before = "" if change.before is None else f"{_value(change.before)} -> "
            lines.append(f"{change.path}: {removed if change.after is None else before + _value(change.after)}")
        elif points:
            lines.append(f"{BY_NAME}.{name}: added ({points[0].tool}, {count_text(len(points), 'point')})")
        else:
            lines.append(f"{BY_NAME}.{name}: removed")
    # A workload that is added or removed as a whole has one line.
    return "\n".join(dict.fromkeys(lines)) or NONE


def _value(value: JsonValue) -> str:
    return yaml.safe_dump([value], default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)[1:-2]


def _seconds(variants: Mapping[str, _PlannedVariant], turns: Iterable[Turn]) -> int:
    return sum(variants[turn.variant].cost.total_seconds for turn in turns)


def _time(seconds: int) -> str:
    return str(timedelta(seconds=seconds))


_COLUMNS: Sequence[Column[_PlannedVariant]] = (
    Column("Variant", lambda variant: variant.name),
    Column("Changes", _changes, folded=True),
    Number("Points", lambda variant: variant.cost.points),
    Number("Trials", lambda variant: variant.cost.trials),
    Number("Time", lambda variant: _time(variant.cost.total_seconds)),
)
