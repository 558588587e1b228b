"""The page: what stands in it, and in which order."""

from collections.abc import Sequence

from plimsoll.report.comparing import comparison_section
from plimsoll.report.curves import curves_section
from plimsoll.report.distribution import distribution_section
from plimsoll.report.heat import heat_section
from plimsoll.report.layering import layers_section
from plimsoll.report.overview import overview_section
from plimsoll.report.points import sweeps_of
from plimsoll.report.provenance import provenance_section
from plimsoll.report.runs import Compared, Run
from plimsoll.report.table import results_section
from plimsoll.report.timeline import timeline_section
from plimsoll.report.trials import trials_section
from plimsoll.report.verdicts import verdicts_section
from plimsoll.report.view import Page

_NAMED_RUNS = 3


def make_page(runs: Sequence[Run], compared: Sequence[Compared] = ()) -> Page:
    """Return the report of runs. The same results give the same page."""
    sweeps = sweeps_of(runs)
    sections = (
        overview_section(runs),
        verdicts_section(runs, sweeps, compared),
        comparison_section(compared),
        results_section(runs),
        curves_section(sweeps),
        heat_section(sweeps),
        distribution_section(sweeps),
        timeline_section(runs),
        trials_section(runs),
        layers_section(runs),
        provenance_section(runs),
    )
    points = sum(len(run.results) for run in runs)
    workloads = dict.fromkeys(result.spec.workload for run in runs for result in run.results)
    more = f" and {len(runs) - _NAMED_RUNS} more" if len(runs) > _NAMED_RUNS else ""
    return Page(
        title=", ".join(run.label for run in runs[:_NAMED_RUNS]) + more,
        subtitle=f"{points} point{'' if points == 1 else 's'} of {', '.join(workloads)}",
        sections=[section for section in sections if section],
    )
