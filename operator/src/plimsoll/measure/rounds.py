"""Combines the numbers of a trial's consecutive rounds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from plimsoll.api.provenance import ToolUse
from plimsoll.api.result import Finding, OperationResult, Rates
from plimsoll.measure.checking.check import by_reason, verdict_of, worst_of
from plimsoll.measure.checking.links import judge_links
from plimsoll.measure.latency import merge_latencies
from plimsoll.measure.matrix import MatrixCell
from plimsoll.measure.provenance import MAX_VERSIONS
from plimsoll.measure.quantities import by_operation
from plimsoll.measure.series import rounded_iops
from plimsoll.measure.trial import MAX_SLOWEST, MAX_WARNINGS, TrialNumbers
from plimsoll.measure.wording import quote

_MESSAGE_CHARACTERS = 500


def combined(rounds: Sequence[TrialNumbers]) -> TrialNumbers:
    """Return the numbers of a trial: those of a single round, or the means of the rounds' rates.

    Several rounds have no time in common, so the result has no window and no series. The cells of all rounds are judged
    together.
    """
    matrix, links = judge_links([one.matrix for one in rounds])
    if len(rounds) == 1:
        findings = (*rounds[0].findings, *links)
        warnings = _warnings(rounds, matrix)
        return replace(rounds[0], verdict=verdict_of(findings), findings=findings, matrix=matrix, warnings=warnings)
    findings = (*_findings(rounds), *links)
    slowest = sorted((client for one in rounds for client in one.slowest), key=lambda client: client.iops)
    return TrialNumbers(
        verdict=verdict_of(findings),
        findings=findings,
        window=None,
        stalls=None,
        operations=tuple(_operations(rounds)),
        hosts=None,
        slowest=tuple(slowest[:MAX_SLOWEST]),
        osds=None,
        cluster=next((one.cluster for one in rounds if one.cluster), None),
        tool=_tool(rounds),
        warnings=_warnings(rounds, matrix),
        matrix=matrix,
    )


def _warnings(rounds: Sequence[TrialNumbers], matrix: Sequence[MatrixCell]) -> tuple[str, ...]:
    lines = (line for one in rounds for line in one.warnings)
    return tuple(dict.fromkeys((*_local_pairs(matrix), *lines)))[:MAX_WARNINGS]


def _local_pairs(matrix: Sequence[MatrixCell]) -> Iterator[str]:
    """Yield that the rates include pairs which no check compares with others, if they do."""
    if local := sum(cell.is_local for cell in matrix):
        yield (
            f"{local} of {len(matrix)} pairs are on one node: the network between nodes does not limit their rates, "
            "which count like those of the others"
        )


def _findings(rounds: Sequence[TrialNumbers]) -> Iterator[Finding]:
    """Yield the worst finding of each reason, with its round."""
    numbered = ((number, finding) for number, one in enumerate(rounds, start=1) for finding in one.findings)
    for number, worst in map(worst_of, by_reason(numbered)):
        message = quote(f"round {number} of {len(rounds)}: {worst.message}", _MESSAGE_CHARACTERS)
        yield worst.model_copy(update={"message": message})


def _operations(rounds: Sequence[TrialNumbers]) -> Iterator[OperationResult]:
    results_of = by_operation((result for one in rounds for result in one.operations), lambda result: result.operation)
    for operation, results in results_of.items():
        yield OperationResult(
            operation=operation,
            ios=sum(result.ios for result in results),
            bytes=sum(result.bytes for result in results),
            rates=_mean([result.rates for result in results]),
            whole_run=_mean([result.whole_run for result in results]),
            sum_of_rates=_mean([result.sum_of_rates for result in results]),
            latency=merge_latencies(result.latency for result in results),
        )


def _mean(rates: Sequence[Rates]) -> Rates:
    return Rates(
        iops=rounded_iops(fmean(rate.iops for rate in rates)),
        bytes_per_second=round(fmean(rate.bytes_per_second for rate in rates)),
    )


def _tool(rounds: Sequence[TrialNumbers]) -> ToolUse | None:
    """Return the versions of all rounds and the command of the first; no digest covers several rounds."""
    used = [one.tool for one in rounds if one.tool]
    if not used:
        return None
    versions = sorted({version for one in used for version in one.versions})
    return used[0].model_copy(update={"versions": tuple(versions[:MAX_VERSIONS]), "raw_sha256": None})
