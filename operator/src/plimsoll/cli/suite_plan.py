"""The plan of a round of a suite: its variants, its runs in their order, and its duration."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path

from pydantic import JsonValue
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from plimsoll.api.suite import BY_NAME, BenchmarkSuite
from plimsoll.cli.options import TABLE, chosen_seed, freeze_variants, write_document
from plimsoll.cli.tables import Terminal, facts_table, fitted
from plimsoll.lifecycle.ceph.rook_facts import cluster_name
from plimsoll.measure.hypotheses.decide import expectation
from plimsoll.measure.text import count_text
from plimsoll.plan.document import CephTarget, Plan
from plimsoll.plan.expand import Estimate, Writes, estimate, estimate_writes
from plimsoll.report.view import NONE, Column
from plimsoll.suite.children import Turn, suite_digest, turns_of
from plimsoll.suite.merging import FieldChange, is_named_list, variant_changes
from plimsoll.suite.rounds.observed import size_problem

ONLY_CLUSTER = "the only Rook cluster that its namespace may use"  # of a run that names none


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedVariant:
    name: str
    changes: Sequence[FieldChange]
    plan: Plan
    cost: Estimate
    shared: Collection[str]  # the workloads of `spec.run`


def show_suite_plan(file: Path, suite: BenchmarkSuite, seed: int | None, output: str) -> None:
    """Print the plan of a suite as a table or a document; `file` is what errors name. Exits if it has no plan."""
    seed = chosen_seed(seed)
    changes, workloads = variant_changes(suite.spec), suite.spec.run.get(BY_NAME)
    shared = {str(workload["name"]) for workload in workloads} if is_named_list(workloads) else set()
    variants = {
        name: _PlannedVariant(name=name, changes=changes[name], plan=plan, cost=estimate(plan), shared=shared)
        for name, plan in freeze_variants(file, suite, seed).items()
    }
    turns = turns_of(suite.spec, seed)
    if output != TABLE:
        spec = suite.model_dump(mode="json", exclude_none=True)["spec"]
        document = {
            "name": suite.metadata.name,
            "namespace": suite.metadata.namespace,
            "digest": suite_digest(suite.spec),
            "seed": seed,
            "repeat": suite.spec.repeat,
            "variants": [
                {
                    "name": variant.name,
                    "changes": [asdict(change) for change in variant.changes],
                    "points": [
                        point.model_dump(mode="json", include={"name", "tool", "label", "clients"})
                        for point in variant.plan.points
                    ],
                    "trials": variant.cost.trials,
                    "seconds": variant.cost.total_seconds,
                }
                for variant in variants.values()
            ],
            "runs": [{**asdict(turn), "seconds": variants[turn.variant].cost.total_seconds} for turn in turns],
            "totalSeconds": _seconds(variants, turns),
            "comparisons": spec["comparisons"],
            "hypotheses": spec["hypotheses"],
        }
        write_document(document, output)
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Repeat", justify="right", no_wrap=True)
    table.add_column("Runs in their order", overflow="fold")
    table.add_column("Time", justify="right", no_wrap=True)
    for repeat, group in groupby(turns, key=lambda turn: turn.repeat):
        repeated = list(group)
        order = ", ".join(turn.variant for turn in repeated)
        table.add_row(str(repeat), Text(order), _time(_seconds(variants, repeated)))
    yield table
    yield ""
    name = suite.metadata.name
    each = f"{count_text(len(spec.variants), 'variant')}, each {count_text(spec.repeat, 'time')}"
    plans = [variant.plan for variant in variants.values()]
    problem = size_problem(spec.repeat, plans)
    facts = (
        ("Runs", f"{len(turns)}, one at a time: {each}, in shuffled order (seed {seed})"),
        ("Names", f"{name}-VARIANT-MINUTE-REPEAT, with the minute of the start since 1970"),
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


def clusters_text(plans: Iterable[Plan]) -> str:
    """Return the Ceph clusters that plans measure, in words; empty if they measure other storage."""

    def text(target: CephTarget) -> str:
        monitors = f"monitors {', '.join(target.monitors)}" if target.monitors else ONLY_CLUSTER
        return cluster_name(target.rook) if target.rook else monitors

    return "; ".join(dict.fromkeys(text(plan.ceph) for plan in plans if plan.ceph))


def written_text(plans: Sequence[Plan], repeat: int = 1) -> str:
    """Return what plans write if each is measured `repeat` times, in words; empty if they only read."""
    writes = [estimate_writes(plan) for plan in plans]
    preparing, loading = sum(each.preparing for each in writes), sum(each.loading for each in writes)
    return Writes(preparing=repeat * preparing, loading=repeat * loading).text


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
    """Return a value as YAML writes it on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_value(entry)}' for key, entry in value.items())}}}"
    return str(value)


def _seconds(variants: Mapping[str, _PlannedVariant], turns: Iterable[Turn]) -> int:
    return sum(variants[turn.variant].cost.total_seconds for turn in turns)


def _time(seconds: int) -> str:
    return str(timedelta(seconds=seconds))


_COLUMNS: Sequence[Column[_PlannedVariant]] = (
    Column("Variant", lambda variant: variant.name),
    Column("Changes", _changes, folded=True),
    Column("Points", lambda variant: variant.cost.points, right=True),
    Column("Trials", lambda variant: variant.cost.trials, right=True),
    Column("Time", lambda variant: _time(variant.cost.total_seconds), right=True),
)
