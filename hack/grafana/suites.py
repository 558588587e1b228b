"""The dashboard of suites: what they do, what their last rounds show, and how that developed."""

from grafana_foundation_sdk.builders import statetimeline, table
from grafana_foundation_sdk.models import common as shapes

from grafana.common import (
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    Page,
    coloured_by_name,
    column,
    dressed,
    instant_query,
    lines,
    merged,
    nan_as,
    number,
    range_query,
    share,
    table_query,
    verdict_column,
    with_queries,
    words,
)

_DESCRIPTION = (
    "BenchmarkSuites: their state, the comparisons and hypotheses of their last rounds, and the changes over rounds. "
    "kubectl plimsoll results has the numbers, and report the figures."
)

_CHOSEN = '{namespace=~"$namespace",suite=~"$suite"}'
_SUITE = "namespace, suite"
_HEIGHT = 9

_ROUNDS = {
    "NoRegression": GREEN,
    "Regressed": VERMILION,
    "Inconclusive": ORANGE,
    "Failed": VERMILION,
    "Superseded": GREY,
}
_COMPARISONS = {"NoRegression": GREEN, "Regression": VERMILION, "Inconclusive": ORANGE}
_HYPOTHESES = {"Held": GREEN, "Refuted": VERMILION, "Undecided": ORANGE}


def page() -> Page:
    """Return the dashboard."""
    suites = Page("plimsoll-suites", "Suites", _DESCRIPTION, since="now-30d")
    info = "plimsoll_suite_info"
    suites.variable("namespace", "Namespace", f"label_values({info}, namespace)", multi=True)
    suites.variable("suite", "Suite", f'label_values({info}{{namespace=~"$namespace"}}, suite)', multi=True)
    suites.row("Now")
    _now(suites)
    suites.row("The last evaluated round")
    _comparisons(suites)
    _hypotheses(suites)
    suites.row("Over rounds")
    _history(suites)
    return suites


def _of(metric: str, labels: str = _SUITE) -> str:
    """Return a metric of the suites without the labels of its exposer; for a moment there may be two."""
    return f"max by ({labels}) ({metric}{_CHOSEN})"


def _now(suites: Page) -> None:
    info = _of("plimsoll_suite_info", f"{_SUITE}, status, verdict")
    queries = (
        f"{info} * on ({_SUITE}) group_left () {_of('plimsoll_suite_rounds_accepted')} or {info} * NaN",
        f"1000 * {_of('plimsoll_suite_round_completion_timestamp_seconds')}",
        f"1000 * {_of('plimsoll_suite_next_schedule_timestamp_seconds')}",
    )
    columns = {
        "namespace": "Namespace",
        "suite": "Suite",
        "status": "Status",
        "verdict": "Last round",
        "Value #A": "Accepted rounds",
        "Value #B": "Evaluated",
        "Value #C": "Next",
    }
    about = (
        "A row for each suite, as kubectl get bsuite has it. A comparison with accepted rounds needs three of them. "
        "Evaluated is when the last evaluated round ended, Next when the schedule starts another one."
    )
    panel = dressed(table.Panel(), "Suites", about, "none", nothing="no suites")
    queried = with_queries(panel, [table_query(expr, ref) for ref, expr in zip("ABC", queries, strict=True)])
    panel = queried.transformations(merged(columns)).mappings([nan_as("unreadable")])
    panel = column(column(panel, "Evaluated", "dateTimeAsIso"), "Next", "dateTimeAsIso")
    suites.add(verdict_column(panel, "Last round", _ROUNDS), 16, _HEIGHT)

    runs = f"plimsoll_suite_round_runs{_CHOSEN[:-1]}"
    done, planned = (f'max by ({_SUITE}) ({runs},state="{state}"}})' for state in ("done", "planned"))
    about = "Runs of the active round that ended, of all its runs."
    progress = dressed(share(), "Active rounds", about, "percentunit", nothing="no round is active")
    suites.add(progress.with_target(instant_query(f"{done} / {planned}", "{{namespace}}/{{suite}}")), 8, _HEIGHT)


def _comparisons(suites: Page) -> None:
    about = (
        "The mean change that each comparison found, as a part of the baseline, with the ends of its 95 % confidence "
        "interval; less than 0 is worse. Without a change, too little was measured."
    )
    names = ("comparison", "Comparison", "Change")
    _outcomes(suites, names, "plimsoll_suite_comparison", "change_ratio", "change_bound_ratio", about)


def _hypotheses(suites: Page) -> None:
    about = (
        "What each hypothesis is about, a ratio as a part of 1 or an exponent, with the ends of its 95 % confidence "
        "interval. A hypothesis without a variant names its variants itself."
    )
    names = ("hypothesis", "Hypothesis", "Estimate")
    _outcomes(suites, names, "plimsoll_suite_hypothesis", "estimate", "estimate_bound", about)


def _outcomes(suites: Page, names: tuple[str, str, str], base: str, estimate: str, bound: str, about: str) -> None:
    """Add a table of comparisons or hypotheses; `names` are the label, its column, and the column of the estimate."""
    label, title, value = names
    labels = f"{_SUITE}, {label}, variant"
    verdict = f"max by ({labels}, verdict) ({base}_verdict{_CHOSEN} == 1)"
    low, high = (f'max by ({labels}) ({base}_{bound}{_CHOSEN[:-1]},bound="{end}"}})' for end in ("low", "high"))
    queries = (
        f"{verdict} * on ({labels}) group_left () {_of(f'{base}_{estimate}', labels)} or {verdict} * NaN",
        low,
        high,
    )
    columns = {
        "suite": "Suite",
        label: title,
        "variant": "Variant",
        "verdict": "Verdict",
        "Value #A": value,
        "Value #B": "Low",
        "Value #C": "High",
    }
    unit = "percentunit" if estimate == "change_ratio" else "none"
    heading = {"comparison": "Comparisons", "hypothesis": "Hypotheses"}[label]
    panel = dressed(table.Panel(), heading, about, unit, nothing="no round was evaluated").decimals(3)
    queried = with_queries(panel, [table_query(expr, ref) for ref, expr in zip("ABC", queries, strict=True)])
    panel = queried.transformations(merged(columns)).mappings([nan_as("unknown")])
    verdicts = _COMPARISONS if label == "comparison" else _HYPOTHESES
    suites.add(verdict_column(panel, "Verdict", verdicts), 12, _HEIGHT)


def _history(suites: Page) -> None:
    verdict = f"plimsoll_suite_round_verdict{_CHOSEN[:-1]}"
    codes = {str(code): (name, colour) for code, (name, colour) in enumerate(_ROUNDS.items(), start=1)}
    coded = " or ".join(f'{code} * {verdict},verdict="{name}"}}' for code, (name, _) in codes.items())
    about = "The verdict of the last round at each time; it changes when a round ends."
    when = statetimeline.Panel().show_value(shapes.VisibilityMode.AUTO).merge_values(merge_values=True)
    when = dressed(when, "Verdicts over time", about, "none", nothing="no round has ended").mappings([words(codes)])
    suites.add(when.with_target(range_query(f"max by ({_SUITE}) ({coded})", "{{namespace}}/{{suite}}")), 16, _HEIGHT)

    about = "Former rounds in the status of the suites, by verdict."
    rounds = coloured_by_name(dressed(number(), "Rounds", about, "none", nothing="no suites").decimals(0), _ROUNDS)
    counted = f"sum by (verdict) ({_of('plimsoll_suite_rounds', f'{_SUITE}, verdict')})"
    suites.add(rounds.with_target(instant_query(counted, "{{verdict}}")), 8, _HEIGHT)

    about = (
        "The mean change that each comparison found in the last round at each time, as a part of its baseline; less "
        "than 0 is worse. A line is level between two rounds. Whether a change is more than noise is its verdict."
    )
    change = dressed(lines(signed=True), "Changes over time", about, "percentunit", nothing="nothing was compared")
    labels = f"{_SUITE}, comparison, variant"
    legend = "{{namespace}}/{{suite}} {{comparison}}: {{variant}}"
    suites.add(change.with_target(range_query(_of("plimsoll_suite_comparison_change_ratio", labels), legend)), 24, 10)
