"""The dashboard of results: what was measured, how far it may be believed, and how runs compare."""

from grafana_foundation_sdk.builders import barchart, common, table
from grafana_foundation_sdk.models import common as shapes

from grafana.common import (
    BLUE,
    GREY,
    VERDICTS,
    Page,
    Panel,
    by_series,
    coloured_by_name,
    column,
    dressed,
    instant_query,
    legend,
    lines,
    logarithmic,
    merged,
    nan_as,
    number,
    range_query,
    table_query,
    verdict_column,
    with_queries,
)

_DESCRIPTION = (
    "Numbers of BenchmarkResults, with verdicts and confidence intervals. They are gauges of numbers that were "
    "measured once, at the time in the column Measured, not at the time of the scrape. Numbers of Invalid results "
    "are hidden."
)

_CHOSEN = 'namespace=~"$namespace",run=~"$run",workload=~"$workload"'
_BASELINE = 'namespace=~"$namespace",run="$baseline",workload=~"$workload"'
_POINT = "namespace, run, workload, point"
_OPERATION = f"{_POINT}, operation"
_SAME_POINT = "namespace, workload, parameters, clients"
_SAME = f"{_SAME_POINT}, operation"
"""What makes points of two runs the same: names of points are numbers in the order of a specification."""

_BAR_LABELS = '"measured", " · ", "run", "workload", "parameters", "clients", "operation"'
_HEIGHT = 12

_SCRAPED_WITHIN_SECONDS = 300
"""What appears later than this after it was measured is not new: Prometheus or the operator was away meanwhile."""


def page() -> Page:
    """Return the dashboard."""
    results = Page("plimsoll-results", "Results", _DESCRIPTION, since="now-30d")
    info = "plimsoll_result_info"
    results.variable("namespace", "Namespace", f"label_values({info}, namespace)", multi=True)
    results.variable("run", "Run", f'label_values({info}{{namespace=~"$namespace"}}, run)', multi=True)
    chosen = 'namespace=~"$namespace",run=~"$run"'
    results.variable("workload", "Workload", f"label_values({info}{{{chosen}}}, workload)", multi=True)
    results.variable("baseline", "Baseline", f'label_values({info}{{namespace=~"$namespace"}}, run)')
    results.row("Verdicts")
    _counts(results)
    _report(results)
    results.row("Numbers")
    _charts(results)
    results.row("Searches for the line")
    _lines(results)
    results.row("Comparison of runs")
    _comparison(results)
    _history(results)
    results.row("Checks and verdicts")
    _trust(results)
    return results


def _numbers(metric: str, matchers: str = "", chosen: str = _CHOSEN) -> str:
    """Return a metric of operations without the labels of its exposer; for a moment there may be two."""
    return f"max by ({_OPERATION}) ({metric}{{{chosen}{matchers}}})"


def _of_points(metric: str, matchers: str = "") -> str:
    return f"max by ({_POINT}) ({metric}{{{_CHOSEN}{matchers}}})"


def _described(expr: str, chosen: str = _CHOSEN) -> str:
    """Join what was measured: the parameters and how many clients took part."""
    info = f"max by ({_POINT}, parameters, clients) (plimsoll_result_info{{{chosen}}})"
    return f"{expr} * on ({_POINT}) group_left (parameters, clients) {info}"


def _per_operation(expr: str) -> str:
    """Repeat the values of a point for each of its operations, so that a table has them in the same row."""
    return f"{_numbers('plimsoll_result_operations_per_second')} * 0 + on ({_POINT}) group_left () {expr}"


def _half_width() -> str:
    bound = "plimsoll_result_operations_per_second_bound"
    ends = (_numbers(bound, ',bound="high"'), _numbers(bound, ',bound="low"'))
    return f"({ends[0]} - {ends[1]}) / 2"


def _latency(quantile: str) -> str:
    return _numbers("plimsoll_result_latency_seconds", f',quantile="{quantile}"')


def _counts(results: Page) -> None:
    about = "Points by verdict. Suspect: read the findings before you quote the numbers. Invalid: there are none."
    verdicts = dressed(number(), "Points", about, "none", nothing="no results").decimals(0)
    each = f"sum by (verdict) (max by ({_POINT}, verdict) (plimsoll_result_verdict{{{_CHOSEN}}}))"
    verdicts = coloured_by_name(verdicts, VERDICTS).with_target(instant_query(each, "{{verdict}}"))
    results.add(verdicts, 16, 4)

    about = (
        "Results of the whole cluster that are not exposed: too many, or shadowed by a newer one with the same "
        "labels; and results that this version of the operator cannot read. kubectl get bres has them all."
    )
    left_out = dressed(number(), "Left out", about, "none", nothing="no operator").decimals(0)
    queries = [
        instant_query("max(plimsoll_results_omitted)", "omitted", "A"),
        instant_query("max(plimsoll_results_unreadable)", "unreadable", "B"),
    ]
    results.add(with_queries(left_out, queries), 8, 4)


def _report(results: Page) -> None:
    verdict = f"max by ({_POINT}, verdict) (plimsoll_result_verdict{{{_CHOSEN}}} == 1)"
    withheld = _described(f'max by ({_POINT}, verdict) (plimsoll_result_verdict{{{_CHOSEN},verdict="Invalid"}} == 1)')
    iops = _described(_numbers("plimsoll_result_operations_per_second"))
    queries = (
        f"{iops} * on ({_POINT}) group_left (verdict) {verdict} or {withheld} * NaN",
        _half_width(),
        _numbers("plimsoll_result_bytes_per_second"),
        _latency("0.5"),
        _latency("0.99"),
        _latency("0.999"),
        _per_operation(_of_points("plimsoll_result_stall_seconds")),
        _per_operation(_of_points("plimsoll_result_trials")),
        f"1000 * ({_per_operation(_of_points('plimsoll_result_completion_timestamp_seconds'))})",
    )
    columns = {
        "run": "Run",
        "workload": "Workload",
        "parameters": "Parameters",
        "clients": "Clients",
        "operation": "Operation",
        "Value #A": "IOPS",
        "Value #B": "± 95 %",
        "Value #C": "Throughput",
        "Value #D": "p50",
        "Value #E": "p99",
        "Value #F": "p99.9",
        "Value #G": "Stalled",
        "Value #H": "Trials",
        "verdict": "Verdict",
        "Value #I": "Measured",
    }
    about = (
        "A row for each operation of each point, as kubectl get bres has it. ± is half of the 95 % confidence interval "
        "over the trials that count, and absent with one. Stalled is without any completed operation, in the worst "
        "trial. Measured is when the last of these trials ended."
    )
    report = dressed(table.Panel(), "Report", about, "none", nothing="no results").filterable(filterable=True)
    report = _tabled(report, queries, columns).mappings([nan_as("withheld")])
    for name, unit in (("IOPS", "iops"), ("± 95 %", "iops"), ("Throughput", "binBps")):
        report = column(report, name, unit, 1)
    for name in ("p50", "p99", "p99.9", "Stalled"):
        report = column(report, name, "s")
    report = column(column(report, "Trials", "none", 0), "Measured", "dateTimeAsIso")
    newest = common.TableSortByFieldState().display_name("Measured").desc(desc=True)
    results.add(verdict_column(report, "Verdict").sort_by([newest]), 24, _HEIGHT)


def _charts(results: Page) -> None:
    rate = "plimsoll_result_operations_per_second"
    ends = f"{rate}_bound"
    about = (
        "Mean over the trials that count, between the ends of its 95 % confidence interval; without ends there was one "
        "trial. Named by run, workload, parameters, clients and operation."
    )
    # The interval of a few trials that differ may reach below zero; no rate does.
    low, high = (_numbers(ends, f',bound="{bound}"') for bound in ("low", "high"))
    bars = {"low end": _bar(f"clamp_min({low}, 0)"), "IOPS": _bar(_numbers(rate)), "high end": _bar(high)}
    iops = coloured_by_name(
        _bars("IOPS", about, "iops", bars).min(0), {"low end": GREY, "IOPS": BLUE, "high end": GREY}
    )
    results.add(iops, 24, _HEIGHT)

    about = "Of all clients and trials merged, on a logarithmic axis. Absent if the tool keeps no histogram."
    names = {"p50": "0.5", "p99": "0.99", "p99.9": "0.999"}
    bars = {name: _bar(_latency(quantile)) for name, quantile in names.items()}
    results.add(_bars("Latency", about, "s", bars).scale_distribution(logarithmic()), 12, _HEIGHT)

    about = "Mean over the trials that count."
    bars = {"throughput": _bar(_numbers("plimsoll_result_bytes_per_second"))}
    results.add(_bars("Throughput", about, "binBps", bars).min(0), 12, _HEIGHT)


def _bar(expr: str) -> str:
    return f"max by (measured) (label_join({_described(expr)}, {_BAR_LABELS}))"


def _bars(title: str, about: str, unit: str, queries: dict[str, str]) -> barchart.Panel:
    """Return a group of bars for each operation of each point, horizontal because their names are long."""
    panel = barchart.Panel().orientation(shapes.VizOrientation.HORIZONTAL).show_value(shapes.VisibilityMode.AUTO)
    panel = panel.legend(legend(shapes.LegendDisplayMode.LIST)).color_scheme(by_series())
    panel = dressed(panel, title, about, unit, nothing="no results")
    one = len(queries) == 1
    columns = {"measured": "Measured"} | {
        "Value" if one else f"Value #{ref}": name for ref, name in zip("ABC", queries, strict=False)
    }
    return _tabled(panel, tuple(queries.values()), columns)


def _tabled(panel: Panel, queries: tuple[str, ...], columns: dict[str, str]) -> Panel:
    """Let a panel show one table that is made of several queries."""
    letters = [chr(ord("A") + place) for place in range(len(queries))]
    panel = with_queries(panel, [table_query(expr, ref) for ref, expr in zip(letters, queries, strict=True)])
    return panel.transformations(merged(columns))


def _lines(results: Page) -> None:
    info = f"max by ({_POINT}, ending, objectives) (plimsoll_result_line_info{{{_CHOSEN}}})"
    verdict = f"max by ({_POINT}, verdict) (plimsoll_result_verdict{{{_CHOSEN}}} == 1)"
    probes = _described(_of_points("plimsoll_result_line_probes"))
    ended = f"group_left (ending, objectives) {info}"
    queries = (
        f"{probes} * on ({_POINT}) {ended} * on ({_POINT}) group_left (verdict) {verdict}",
        _line(),
        _line("low"),
        _line("high"),
        f"1000 * ({_of_points('plimsoll_result_completion_timestamp_seconds')} and on ({_POINT}) {info})",
    )
    columns = {
        "run": "Run",
        "workload": "Workload",
        "parameters": "Parameters",
        "clients": "Clients",
        "objectives": "Objectives",
        "Value #B": "Line",
        "Value #C": "Low end",
        "Value #D": "High end",
        "Value #A": "Probes",
        "ending": "Ended",
        "verdict": "Verdict",
        "Value #E": "Measured",
    }
    about = (
        "The load at which half of the trials meet all objectives: operations per second, or operations in flight if "
        "the search varied the depth, with the ends of the 95 % interval. Absent where it is outside of the loads "
        "that may be offered. docs/explanation/line.md describes the search and its endings."
    )
    table_of_lines = dressed(table.Panel(), "Lines", about, "none", nothing="no searches")
    table_of_lines = _tabled(table_of_lines.filterable(filterable=True), queries, columns)
    for name in ("Line", "Low end", "High end"):
        table_of_lines = column(table_of_lines, name, "short", 1)
    table_of_lines = column(column(table_of_lines, "Probes", "none", 0), "Measured", "dateTimeAsIso")
    results.add(verdict_column(table_of_lines, "Verdict"), 12, _HEIGHT)

    about = (
        "A dot for each search, when it ended and not at every scrape since, with the ends of its 95 % interval. "
        "Operations per second, or operations in flight if the search varied the depth."
    )
    dots = dressed(lines(), "Line over time", about, "short", nothing="no search ended in this time")
    dots = dots.draw_style(shapes.GraphDrawStyle.POINTS).show_points(shapes.VisibilityMode.ALWAYS).point_size(7)
    legend = "{{namespace}}: {{workload}} {{parameters}}, {{clients}} clients"
    ends = {"A": ("line", ""), "B": ("low end", "low"), "C": ("high end", "high")}
    over_time = [
        range_query(f"max by ({_SAME_POINT}) ({_new(_described(_line(bound)))})", f"{legend}, {name}", ref)
        for ref, (name, bound) in ends.items()
    ]
    results.add(with_queries(dots.interval("1m"), over_time), 12, _HEIGHT)


def _line(bound: str = "") -> str:
    """Return the lines of searches for rates and for depths, or the ends of their intervals."""
    suffix, matchers = ("_bound", f',bound="{bound}"') if bound else ("", "")
    names = ("plimsoll_result_line_operations_per_second", "plimsoll_result_line_operations_in_flight")
    return f"({' or '.join(_of_points(f'{name}{suffix}', matchers) for name in names)})"


def _comparison(results: Page) -> None:
    measured = (
        "plimsoll_result_operations_per_second",
        "plimsoll_result_bytes_per_second",
        "plimsoll_result_latency_seconds",
    )
    queries = tuple(_change(metric, ',quantile="0.99"' if "latency" in metric else "") for metric in measured)
    columns = {
        "run": "Run",
        "workload": "Workload",
        "parameters": "Parameters",
        "clients": "Clients",
        "operation": "Operation",
        "Value #A": "IOPS",
        "Value #B": "Throughput",
        "Value #C": "p99",
    }
    about = (
        "Change against the run chosen as Baseline in the same namespace, of points with the same workload, "
        "parameters and clients: +5 % IOPS is faster, +5 % p99 is slower. plimsoll compare decides whether a change "
        "is more than noise."
    )
    changes = dressed(table.Panel(), "Change against $baseline", about, "percentunit", nothing="nothing in common")
    results.add(_tabled(changes.decimals(1), queries, columns), 12, _HEIGHT)


def _change(metric: str, matchers: str) -> str:
    chosen = _described(_numbers(metric, matchers))
    baseline = _described(_numbers(metric, matchers, _BASELINE), _BASELINE)
    return f"({chosen}) / on ({_SAME}) group_left () ({baseline}) - 1"


def _history(results: Page) -> None:
    new = _new(_described(_numbers("plimsoll_result_operations_per_second")))
    about = (
        "A dot for each result, when it was measured and not at every scrape since: the same workload, parameters "
        "and clients over runs. Results measured while Prometheus did not scrape the operator have no dot; they are "
        "in the report above."
    )
    dots = dressed(lines(), "IOPS over time", about, "iops", nothing="nothing was measured in this time")
    dots = dots.draw_style(shapes.GraphDrawStyle.POINTS).show_points(shapes.VisibilityMode.ALWAYS).point_size(7)
    legend = "{{namespace}}: {{workload}} {{parameters}}, {{clients}} clients, {{operation}}"
    results.add(dots.interval("1m").with_target(range_query(f"max by ({_SAME}) ({new})", legend)), 12, _HEIGHT)


def _new(expr: str) -> str:
    """Return the values of results that a step is the first to know, so that exactly one step draws each."""
    finished = _of_points("plimsoll_result_completion_timestamp_seconds")
    before = f"max by ({_POINT}) (plimsoll_result_completion_timestamp_seconds{{{_CHOSEN}}} offset $__interval)"
    fresh = f"(time() - {finished} < $__interval_ms / 1000 + {_SCRAPED_WITHIN_SECONDS})"
    return f"{expr} and on ({_POINT}) {fresh} unless on ({_POINT}) ({finished} == {before})"


def _trust(results: Page) -> None:
    queries = (
        _described(_of_points("plimsoll_result_trials")),
        _of_points("plimsoll_result_overlap_ratio"),
        _of_points("plimsoll_result_start_spread_seconds"),
        _of_points("plimsoll_result_stall_seconds"),
    )
    columns = {
        "run": "Run",
        "workload": "Workload",
        "parameters": "Parameters",
        "clients": "Clients",
        "Value #A": "Trials",
        "Value #B": "Overlap",
        "Value #C": "Start spread",
        "Value #D": "Stalled",
    }
    about = (
        "The worst trial of each point. Overlap: the time in which all clients measured, divided by their mean "
        "runtime. Start spread: last start minus first start. Stalled: seconds without any completed operation. "
        "docs/reference/checks.md has all checks with their limits; the findings are in the results."
    )
    trust = dressed(table.Panel(), "Trials behind the numbers", about, "none", nothing="no results")
    trust = _tabled(trust.filterable(filterable=True), queries, columns)
    trust = column(column(trust, "Trials", "none", 0), "Overlap", "percentunit", 1)
    results.add(column(column(trust, "Start spread", "s"), "Stalled", "s"), 24, _HEIGHT)
