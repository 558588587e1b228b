"""The sections of the page, in order."""

from collections.abc import Sequence

from plimsoll.measure.text import count_text, first_few
from plimsoll.report import overview, suite
from plimsoll.report.comparing import comparison_section
from plimsoll.report.figure import ReportedRun, ReportedSuite, sweeps_of
from plimsoll.report.layers_links import layers_section, links_section
from plimsoll.report.line import lines_section
from plimsoll.report.sweeps import curves_section, distribution_section
from plimsoll.report.trials import timeline_section, trials_section
from plimsoll.report.view import ReportPage
from plimsoll.suite.evaluation import Compared


def make_page(runs: Sequence[ReportedRun], compared: Sequence[Compared] = ()) -> ReportPage:
    """Return the report of runs; it depends on the results only."""
    sweeps = sweeps_of(runs)
    sections = (
        overview.overview_section(runs),
        overview.verdicts_section(runs, sweeps, compared),
        comparison_section(compared),
        lines_section(runs),
        overview.results_section(runs),
        curves_section(sweeps),
        distribution_section(sweeps),
        timeline_section(runs),
        trials_section(runs),
        links_section(runs),
        overview.hosts_section(runs),
        layers_section(runs),
        overview.provenance_section(runs),
    )
    points = sum(len(run.results) for run in runs)
    workloads = dict.fromkeys(result.spec.workload for run in runs for result in run.results)
    return ReportPage(
        title=first_few([run.label for run in runs], 3),
        subtitle=f"{count_text(points, 'point')} of {', '.join(workloads)}",
        sections=[section for section in sections if section],
    )


def make_suite_page(reported: ReportedSuite) -> ReportPage:
    """Return the report of a suite; it depends on the results and on how the rounds were judged only."""
    sections = (
        suite.rounds_section(reported.rounds),
        suite.judgements_section(reported.evaluation),
        suite.hypotheses_section(reported.evaluation.decisions),
        suite.published_section(reported.study),
        suite.trends_section(reported.rounds),
        comparison_section(reported.evaluation.comparisons),
        layers_section(reported.variants),
        overview.results_section(reported.variants) if reported.variants else None,
        overview.overview_section(reported.variants) if reported.variants else None,
    )
    names = ", ".join(run.label for run in reported.variants)
    rounds = count_text(len(reported.rounds), "round") + (f" of {names}" if names else "")
    return ReportPage(
        title=reported.label,
        subtitle="; ".join(filter(None, (rounds, reported.failed))),
        sections=[section for section in sections if section],
    )
