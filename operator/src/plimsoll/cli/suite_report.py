"""`plimsoll suite report`: the rounds of a suite as one HTML file."""

from collections.abc import Sequence
from pathlib import Path

import click

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.layers import layers_of, write_amplification
from plimsoll.cli.report import output_file_option, write_page
from plimsoll.cli.suite_history import SuiteRounds, accept_option, load_rounds
from plimsoll.cli.suite_results import doubts_of
from plimsoll.measure.compare.noise import RepeatsDifferError, as_one_run
from plimsoll.report.inputs import Compared, ComparedVariants, ReportedRound, ReportedRun, ReportedSuite
from plimsoll.report.page import make_suite_page
from plimsoll.report.view import count_text


@click.command()
@click.argument("sources", metavar="DIR...|SUITE", nargs=-1, required=True)
@accept_option
@output_file_option
@cluster_options
def command(*, sources: tuple[str, ...], accepted: tuple[str, ...], output: Path) -> None:
    """Write a report of a suite as a single HTML file that needs no network.

    It has the rounds with their verdicts, every point over the rounds with marks where Ceph, the kernel or nodes
    changed, and of the last round the variants side by side, the comparisons and the hypotheses. A suite with the
    annotation plimsoll.dev/study (kit, ornl, utsa, ctu or blog) is shown beside that published study. The sources are
    those of `suite results`: directories of `plimsoll suite run`, or a suite in a cluster, NAME or NAMESPACE/NAME.

    Requires plotly and Jinja2: pip install 'plimsoll[report]'.
    """
    suite = reported(load_rounds(sources, accepted))
    write_page(make_suite_page(suite), output)
    click.echo(f"{output}: {count_text(len(suite.rounds), 'round')} of suite {suite.label}; open it in a browser")


def reported(rounds: SuiteRounds) -> ReportedSuite:
    """Return what the report of a suite shows."""
    course, findings = rounds.course, rounds.findings
    return ReportedSuite(
        label=rounds.label,
        rounds=[
            ReportedRound(judged=judged, conclusion=conclusion)
            for judged, conclusion in zip(course.history.rounds, course.conclusions, strict=True)
        ],
        variants=[_variant(name, runs) for name, runs in findings.runs.items() if runs],
        comparisons=[
            ComparedVariants(
                name=compared.name,
                compared=Compared(
                    baseline=compared.baseline,
                    candidate=compared.candidate,
                    comparison=compared.comparison,
                    likeness=compared.likeness,
                ),
                conclusion=compared.conclusion,
                doubts=[*doubts_of(compared)],
            )
            for compared in findings.comparisons
        ],
        judgements=course.judgements,
        decisions=findings.decisions,
        study=findings.study,
    )


def _variant(name: str, runs: Sequence[list[BenchmarkResult]]) -> ReportedRun:
    """Return a variant's runs as one; its first run alone if they measured different things."""
    try:
        combined = as_one_run(runs)
    except RepeatsDifferError:
        combined = runs[0]
    is_on_ceph = any(result.status.environment.ceph is not None for result in runs[0])
    return ReportedRun(
        label=name,
        results=combined,
        layers=layers_of(runs[0]) if is_on_ceph else (),
        write_amplification=write_amplification(runs[0]) if is_on_ceph else None,
    )
