"""The sections of the page, in order."""

from collections.abc import Sequence

from plimsoll.measure.text import count_text, first_few
from plimsoll.report.comparing import comparison_section
from plimsoll.report.figure import ReportedRun, ReportedSuite, searches_of, sweeps_of
from plimsoll.report.layers_links import layers_section, links_section
from plimsoll.report.line import lines_section
from plimsoll.report.overview import (
    hosts_section,
    overview_section,
    provenance_section,
    results_section,
    verdicts_section,
)
from plimsoll.report.suite import hypotheses_section, judgements_section, published_section, rounds_section
from plimsoll.report.sweeps import curves_section, distribution_section
from plimsoll.report.trends import trends_section, variants_section
from plimsoll.report.trials import timeline_section, trials_section
from plimsoll.report.view import ReportPage
from plimsoll.suite.evaluation import Compared


def make_page(runs: Sequence[ReportedRun], compared: Sequence[Compared] = ()) -> ReportPage:
    """Return the report of runs; it depends on the results only."""
    sweeps, searched = sweeps_of(runs), searches_of(runs)
    sections = (
        overview_section(runs),
        verdicts_section(runs, sweeps, compared, searched),
        comparison_section(compared),
        lines_section(searched),
        results_section(runs),
        curves_section(sweeps),
        distribution_section(sweeps),
        timeline_section(runs),
        trials_section(runs),
        links_section(runs),
        hosts_section(runs),
        layers_section(runs),
        provenance_section(runs),
    )
    points = sum(len(run.results) for run in runs)
    workloads = dict.fromkeys(result.spec.workload for run in runs for result in run.results)
    return ReportPage(
        title=first_few([run.label for run in runs], 3),
        subtitle=f"{count_text(points, 'point')} of {', '.join(workloads)}",
        sections=[section for section in sections if section],
    )


def make_suite_page(suite: ReportedSuite) -> ReportPage:
    """Return the report of a suite; it depends on the results and on how the rounds were judged only."""
    sections = (
        rounds_section(suite.rounds),
        judgements_section(suite.evaluation),
        hypotheses_section(suite.evaluation.decisions),
        published_section(suite.study),
        trends_section(suite.rounds),
        variants_section(suite.variants),
        comparison_section(suite.evaluation.comparisons),
        layers_section(suite.variants),
        results_section(suite.variants) if suite.variants else None,
        overview_section(suite.variants) if suite.variants else None,
    )
    names = ", ".join(run.label for run in suite.variants)
    rounds = count_text(len(suite.rounds), "round") + (f" of {names}" if names else "")
    return ReportPage(
        title=suite.label,
        subtitle="; ".join(filter(None, (rounds, suite.failed))),
        sections=[section for section in sections if section],
    )
