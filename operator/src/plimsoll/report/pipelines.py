"""Files for pipelines: JUnit XML, and a row of CSV for each run or round, as Apache Otava imports it.

A JUnit file fails where a person should look: Invalid points are errors and regressions are failures. Of a suite, only
what decides about the round can fail. The elements follow Jenkins' junit-10 schema, pytest's `xunit2`, so numbers are
properties of suites: in that schema, test cases have none.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean
from xml.etree import ElementTree as ET

from plimsoll.api.json_reader import printable_text
from plimsoll.api.names import Metric, Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import Conclusion, HypothesisVerdict, RoundVerdict
from plimsoll.measure.checks.judge import reasons_of
from plimsoll.measure.compare.comparison import Comparison, change_text, interval_text, quantity_text, verdict_text
from plimsoll.measure.compare.lines import line_estimate
from plimsoll.measure.compare.values import COMPARED
from plimsoll.measure.summary import OF_DISTURBANCES
from plimsoll.measure.text import count_text, first_few, quote
from plimsoll.report.comparing import ComparedRow, compared_rows
from plimsoll.report.figure import UNFINISHED, ReportedRun, ReportedSuite, counting, drawable, statistic_of
from plimsoll.report.figure import verdict_text as point_verdict
from plimsoll.report.points import no_numbers, while_disturbed
from plimsoll.suite.evaluation import versions_of
from plimsoll.suite.measured import MeasuredRound

Numbers = Mapping[str, float]  # by name, such as random-read-000.read.p99: rates per second, nanoseconds


class Outcome(StrEnum):
    """What a test case shows; the value is the name of its element in JUnit XML."""

    PASSED = ""
    FAILED = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test case."""

    group: str  # what CI systems call the class
    name: str  # unique in the group, and the same in the next run of a pipeline
    outcome: Outcome
    kind: str  # a verdict, a reason or a conclusion; the type of a failure
    message: str  # one line
    details: Sequence[str] = ()  # further lines
    seconds: float | None = None  # measured; None for a comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A group of test cases."""

    name: str
    cases: Sequence[Case]
    numbers: Numbers = field(default_factory=dict)
    started_at: str = ""


def junit_text(suites: Sequence[Suite]) -> str:
    """Return a JUnit XML document in ASCII, which every encoding of a terminal or a file leaves intact."""
    cases = [case for suite in suites for case in suite.cases]
    root = ET.Element("testsuites", {"name": "plimsoll", **_counts(cases)})
    for suite in suites:
        attributes = {"timestamp": suite.started_at} if suite.started_at else {}
        element = _element(root, "testsuite", name=suite.name, **_counts(suite.cases), **attributes)
        element.set("skipped", str(sum(case.outcome is Outcome.SKIPPED for case in suite.cases)))
        if suite.numbers:
            properties = ET.SubElement(element, "properties")
            for name, number in suite.numbers.items():
                _element(properties, "property", name=name, value=f"{number:.10g}")
        for case in suite.cases:
            shown = _element(element, "testcase", classname=quote(case.group), name=quote(case.name))
            if case.seconds is not None:
                shown.set("time", f"{case.seconds:.3f}")
            if case.outcome:
                message = quote(case.message, len(case.message))
                failure = _element(shown, case.outcome, type=case.kind, message=message)
                failure.text = printable_text("\n".join(case.details)) or None
            elif case.message or case.details:
                lines = filter(None, (case.message and f"{case.kind}: {case.message}", *case.details))
                ET.SubElement(shown, "system-out").text = printable_text("\n".join(lines))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii")


def _element(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    # XML can represent neither control characters nor surrogates.
    return ET.SubElement(parent, tag, {key: printable_text(text) for key, text in attributes.items()})


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    numbers = {
        "tests": len(cases),
        "failures": sum(case.outcome is Outcome.FAILED for case in cases),
        "errors": sum(case.outcome is Outcome.ERROR for case in cases),
    }
    seconds = sum(case.seconds or 0 for case in cases)
    return {key: str(number) for key, number in numbers.items()} | {"time": f"{seconds:.3f}"}


def suite_of_run(run: ReportedRun, *, strict: bool = False) -> Suite:
    """Return the points of a run as test cases; with `strict`, Suspect ones have failed."""
    return Suite(
        name=run.label,
        cases=[_case_of_point(result, strict=strict) for result in run.results],
        numbers=numbers_of(run.results),
        started_at=_started_at(run.results),
    )


def _case_of_point(result: BenchmarkResult, *, strict: bool) -> Case:
    status, reason = result.status, next(iter(reasons_of(result.status)), "")
    findings = sorted(status.findings, key=lambda finding: finding.reason != reason)
    message = f"{findings[0].reason}: {findings[0].message}" if findings else no_numbers(result)
    outcome = {
        Verdict.VALID: Outcome.PASSED,
        Verdict.SUSPECT: Outcome.FAILED if strict else Outcome.PASSED,
        Verdict.INVALID: Outcome.ERROR,
        None: Outcome.SKIPPED,
    }[status.verdict]
    return Case(
        group=result.spec.workload,
        name=f"{result.spec.label}, {count_text(result.spec.clients, 'client')}",
        outcome=outcome,
        kind=point_verdict(result),
        message="" if status.verdict is Verdict.VALID else message,
        details=[
            f"{finding.reason} ({finding.verdict}): {quote(finding.message, len(finding.message))}"
            for finding in status.findings
        ],
        seconds=sum(trial.window.seconds for trial in counting(result) if trial.window),
    )


def suite_of_comparison(name: str, comparison: Comparison) -> Suite:
    """Return the gating metrics of a comparison, the mean changes and the conclusion as test cases."""
    rows = [*compared_rows(comparison)]
    cases = [_case_of_change(row) for row in rows if row.metric is None or row.metric.gates]
    conclusion = Case(
        group="comparison",
        name="conclusion",
        outcome=_OUTCOMES[comparison.conclusion],
        kind=comparison.conclusion,
        message="; ".join(comparison.reasons),
    )
    numbers = {
        f"{_name(row.point or row.workload, row.change.operation, row.change.metric)}.{key}": value
        for row in rows
        for key in ("ratio", "low", "high")
        if (value := getattr(row.change, key)) is not None
    }
    return Suite(name=name, cases=[*cases, conclusion], numbers=numbers)


_OUTCOMES: Mapping[str, Outcome] = {
    Conclusion.NO_REGRESSION: Outcome.PASSED,
    Conclusion.REGRESSION: Outcome.FAILED,
    Conclusion.INCONCLUSIVE: Outcome.SKIPPED,
    HypothesisVerdict.HELD: Outcome.PASSED,
    RoundVerdict.REGRESSED: Outcome.FAILED,
}
"""By what is shown; whatever else there is has not enough evidence."""
_BAD = {Conclusion.REGRESSION, RoundVerdict.REGRESSED, HypothesisVerdict.REFUTED}


def _case_of_change(row: ComparedRow) -> Case:
    change = row.change
    left = () if row.mark else ("the mean change of the workload decides",)
    has_interval = change.low is not None or change.high is not None
    words = f"{change_text(change.ratio)}{f', 95 % interval {interval_text(change)}' if has_interval else ''}"
    return Case(
        group=row.workload,
        name=f"{row.place}, {quantity_text(change.operation, change.metric)}",
        outcome=_OUTCOMES[change.conclusion],
        kind=change.conclusion,
        message="; ".join((f"{words}: {verdict_text(change)}", *left, *change.notes)),
    )


def suites_of_rounds(suite: ReportedSuite, *, strict: bool = False) -> Iterator[Suite]:
    """Yield the verdict of the last round, its comparisons and hypotheses, and the points of each variant."""
    evaluation, (last, measured) = suite.evaluation, suite.rounds[-1]

    def case(group: str, name: str, shown: str, message: str, *, decides: bool = True) -> Case:
        outcome = _OUTCOMES.get(shown, Outcome.SKIPPED)
        if shown in _BAD and not (decides and not last.accepted):
            why = "the round is accepted" if decides else "it does not decide about the round"
            outcome, message = Outcome.SKIPPED, f"{shown}, but {why}: {message}"
        return Case(group=group, name=name, outcome=outcome, kind=shown, message=message)

    cases = [
        case("round", "verdict", last.verdict, evaluation.message),
        *(case(outcome.name, outcome.variant, outcome.verdict, outcome.message) for outcome in evaluation.outcomes),
        *(
            case(
                compared.name,
                f"{compared.candidate} against {compared.baseline}",
                compared.conclusion,
                "; ".join([*compared.reasons, *(compared.comparison.reasons if compared.comparison else ())]),
                decides=False,
            )
            for compared in evaluation.comparisons
        ),
        *(
            case(
                "hypotheses",
                " ".join(filter(None, (decision.name, decision.variant))),
                decision.verdict,
                "; ".join((decision.sentence.removesuffix("."), *decision.notes)),
                decides=False,
            )
            for decision in evaluation.decisions
        ),
    ]
    if suite.failed:
        message = suite.failed
        cases.insert(
            0, Case(group="round", name="latest", outcome=Outcome.ERROR, kind=RoundVerdict.FAILED, message=message)
        )
    yield Suite(name=suite.label, cases=cases, numbers=_numbers_of_round(measured), started_at=last.start_time)
    for variant in suite.variants:
        yield replace(suite_of_run(variant, strict=strict), name=f"{suite.label}: {variant.label}")


# Numbers


def numbers_of(results: Iterable[BenchmarkResult]) -> dict[str, float]:
    """Return the means over trials, of the metrics that comparisons show, and lines; only of points with numbers."""
    numbers = {}
    for result in results:
        if (line := line_estimate(result) if result.spec.line else None) is not None:
            numbers[f"{result.spec.point}.{Metric.LINE}"] = line
        for operation in () if result.spec.line else drawable(result):
            for metric in COMPARED:
                if metric in OF_DISTURBANCES:
                    value = while_disturbed(result, operation, metric)
                else:
                    value = statistic.mean if (statistic := statistic_of(operation, metric)) else None
                if value is not None:
                    numbers[_name(result.spec.point, operation.operation, metric)] = value
    return numbers


def _name(point: str, operation: Operation, metric: Metric) -> str:
    return f"{point}.{metric}" if metric is Metric.LINE else f"{point}.{operation}.{metric}"


def _numbers_of_round(measured: MeasuredRound) -> dict[str, float]:
    """Return the geometric means over the runs of a round, of gating metrics, by variant and point."""
    return {
        f"{each.variant}.{_name(each.point, each.operation, each.metric)}": math.exp(fmean(series.values()))
        for each, series in measured.values.items()
    }


def _started_at(results: Iterable[BenchmarkResult]) -> str:
    return min((trial.started_at for result in results for trial in result.status.trials), default="")


# Otava


Row = tuple[str, Mapping[str, str], Numbers]  # time, attributes and numbers of a run or a round


OtavaTable = tuple[Sequence[Sequence[str]], Sequence[str]]
"""Lines in the order of time after a header, and sentences about what had to be left out."""


def otava_of_runs(runs: Iterable[ReportedRun]) -> OtavaTable:
    rows: list[Row] = []
    for run in runs:
        verdict = max(map(point_verdict, run.results), key=[*Verdict, UNFINISHED].index)
        versions = versions_of(result.status.fingerprint for result in run.results)
        attributes = {"run": run.place, "verdict": verdict, **versions}
        rows.append((_started_at(run.results), attributes, numbers_of(run.results)))
    return _otava_table(rows)


def otava_of_rounds(suite: ReportedSuite) -> OtavaTable:
    rows: list[Row] = []
    for ended, measured in suite.rounds:
        versions = versions_of(condition.fingerprint for condition in measured.conditions)
        accepted = str(ended.accepted).lower()
        attributes = {"round": ended.name, "verdict": ended.verdict, "accepted": accepted, **versions}
        rows.append((ended.start_time, attributes, _numbers_of_round(measured)))
    return _otava_table(rows)


def _otava_table(rows: Iterable[Row]) -> OtavaTable:
    """Return a table without empty numbers: Otava cannot read them, and it would place every value of a gap wrongly."""
    every = sorted(rows, key=lambda row: row[0])
    used = [(time, attributes, numbers) for time, attributes, numbers in every if time and numbers]
    names = list(dict.fromkeys(name for _, attributes, _ in used for name in attributes))
    metrics = list(dict.fromkeys(name for _, _, numbers in used for name in numbers))
    complete = [name for name in metrics if all(name in numbers for _, _, numbers in used)]
    partial = [name for name in metrics if name not in complete]
    without = [next(iter(attributes.values())) for time, attributes, numbers in every if not (time and numbers)]
    notes = []
    if without:
        notes.append(f"Left out, because they have no numbers: {first_few(without)}.")
    if partial:
        notes.append(f"Left out, because not every row has them: {first_few(partial)}.")
    lines = [
        [time, *(attributes.get(name, "") for name in names), *(f"{numbers[name]:.10g}" for name in complete)]
        for time, attributes, numbers in used
    ]
    return [["time", *names, *complete], *lines], notes
