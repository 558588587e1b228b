"""The sections of the page, in order."""

from collections.abc import Sequence

from plimsoll.report.comparing import comparison_section
from plimsoll.report.curves import curves_section
from plimsoll.report.distribution import distribution_section
from plimsoll.report.heat import heat_section
from plimsoll.report.hosts import hosts_section
from plimsoll.report.layering import layers_section
from plimsoll.report.lines import lines_section
from plimsoll.report.links import links_section
from plimsoll.report.overview import overview_section
from plimsoll.report.points import sweeps_of
from plimsoll.report.positions import positions_section
from plimsoll.report.provenance import provenance_section
from plimsoll.report.runs import Compared, ReportedRun
from plimsoll.report.searches import searches_of
from plimsoll.report.table import results_section
from plimsoll.report.text import count_text, first_few
from plimsoll.report.timeline import timeline_section
from plimsoll.report.trials import trials_section
from plimsoll.report.verdicts import verdicts_section
from plimsoll.report.view import ReportPage

_NAMED_RUNS = 3


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
        heat_section(sweeps),
        distribution_section(sweeps),
        timeline_section(runs),
        positions_section(runs),
        trials_section(runs),
        links_section(runs),
        hosts_section(runs),
        layers_section(runs),
        provenance_section(runs),
    )
    points = sum(len(run.results) for run in runs)
    workloads = dict.fromkeys(result.spec.workload for run in runs for result in run.results)
    return ReportPage(
        title=first_few([run.label for run in runs], _NAMED_RUNS),
        subtitle=f"{count_text(points, 'point')} of {', '.join(workloads)}",
        sections=[section for section in sections if section],
    )
