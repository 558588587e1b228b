"""The sections of a suite's page, in order."""

from plimsoll.report.comparing import comparison_section
from plimsoll.report.hypotheses import hypotheses_section
from plimsoll.report.judgements import judgements_section, rounds_section
from plimsoll.report.layering import layers_section
from plimsoll.report.overview import overview_section
from plimsoll.report.published import published_section
from plimsoll.report.suites import ReportedSuite
from plimsoll.report.table import results_section
from plimsoll.report.text import count_text
from plimsoll.report.trends import trends_section
from plimsoll.report.variants import variants_section
from plimsoll.report.view import ReportPage


def make_suite_page(suite: ReportedSuite) -> ReportPage:
    """Return the report of a suite; it depends on the results and on how the rounds were judged only."""
    sections = (
        rounds_section(suite.rounds),
        judgements_section(suite),
        hypotheses_section(suite.decisions),
        published_section(suite.study),
        trends_section([one.judged for one in suite.rounds]),
        variants_section(suite.variants),
        comparison_section([one.compared for one in suite.comparisons]),
        layers_section(suite.variants),
        results_section(suite.variants) if suite.variants else None,
        overview_section(suite.variants) if suite.variants else None,
    )
    names = ", ".join(run.label for run in suite.variants)
    return ReportPage(
        title=suite.label,
        subtitle=f"{count_text(len(suite.rounds), 'round')}" + (f" of {names}" if names else ""),
        sections=[section for section in sections if section],
    )
