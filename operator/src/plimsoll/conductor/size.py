"""The size limit of results, which every watcher of the API server receives whole, and what is dropped first."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from plimsoll.api.model import Model
from plimsoll.api.names import Verdict
from plimsoll.api.operation import OperationResult
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.measure.checks.repetitions import without_names
from plimsoll.measure.text import quote

MAX_STATUS_BYTES = 248 * 2**10  # the part of 256 KiB that metadata and specification leave to a status
_REASON_CHARACTERS = 80

M = TypeVar("M", bound=Model)

_LEFT_OUT = "left out, because the result would be larger than 256 KiB"
_REMEDY = "; use fewer repetitions to have them"


def without_distributions(trial: Trial) -> Trial:
    """Return a trial without histograms and series, which matter only for trials that count."""
    return _without_series(without_histograms(trial))


def replaced_attempt(trial: Trial) -> Trial:
    """Return the part of a repeated attempt to keep: its outcome, the reason, its rates and its percentiles."""
    reduced = _without_command(_without_storage(_without_cached_nodes(_without_slowest(trial))))
    return _with(_without_steadiness(without_distributions(reduced)), disturbance=None)


def bare_attempt(trial: Trial, *, has_rates: bool) -> Trial:
    """Return the part of a repeated attempt of a search to keep, which may have many: its outcome and the reasons.

    The first attempt that the harness alone did not spoil keeps its rates and percentiles (`has_rates`), and so does an
    attempt for which this is not known yet.
    """
    bare = _with(_with_short_findings(replaced_attempt(trial)), warnings=(), hosts=None, tool=None)
    return bare if has_rates else _with(bare, operations=())


def without_histograms(trial: Trial) -> Trial:
    return _with_operations(trial, lambda operation: _with(operation, latency=_with(operation.latency, histogram=None)))


def fit(status: ResultStatus) -> ResultStatus:
    """Return a status below `MAX_STATUS_BYTES`: if needed without names of places, series, hosts, nodes or commands.

    First to go is what neither a verdict nor a page needs, last are parts of the matrix. One warning of each trial that
    counts names the omissions. Histograms are kept, because the summary is computed from them, except in a search.
    """
    trials = status.trials
    omitted: list[tuple[str, ...]] = [()] * len(trials)
    for name, without in (*_OPTIONAL, *(_OPTIONAL_IN_SEARCH if status.line else (_DIGESTS,))):
        if not _is_too_large(status):
            break
        reduced = tuple(map(without, trials))
        omitted = [
            names if new == old else (*names, name) for names, new, old in zip(omitted, reduced, trials, strict=True)
        ]
        trials = reduced
        # Attempts that do not count may be many, so they do not name their omissions.
        counts = [bool(trial.operations) if status.line else trial.verdict is not Verdict.INVALID for trial in trials]
        remedy = "" if status.line else _REMEDY
        warned = (
            _with_warning(trial, names, remedy) if names and counted else trial
            for trial, names, counted in zip(trials, omitted, counts, strict=True)
        )
        status = _with(status, trials=tuple(warned))
    if _is_too_large(status) and status.summary is not None and status.summary.matrix is not None:
        # The means of the pairs do not need these columns.
        matrix = _with(status.summary.matrix, least_bytes_per_second=None, least_iops=None, retransmits=None)
        *others, last = status.trials
        warned_last = _with_warning(last, ["lowest rates and retransmits of pairs"], _REMEDY)
        status = _with(status, summary=_with(status.summary, matrix=matrix), trials=(*others, warned_last))
    return status


def _is_too_large(status: ResultStatus) -> bool:
    return len(status.model_dump_json(exclude_none=True).encode()) > MAX_STATUS_BYTES


def _with_warning(trial: Trial, omitted: Sequence[str], remedy: str) -> Trial:
    return _with(trial, warnings=(*trial.warnings, f"{', '.join(omitted)} {_LEFT_OUT}{remedy}"))


def _without_series(trial: Trial) -> Trial:
    return _with_operations(trial, lambda operation: _with(operation, series=None))


def _without_slowest(trial: Trial) -> Trial:
    return _with(trial, slowest=())


def _without_tails(trial: Trial) -> Trial:
    if trial.disturbance is None:
        return trial
    bare = [
        _with(phase, operations=tuple(_with(each, percentiles={}) for each in phase.operations))
        for phase in trial.disturbance.phases
    ]
    return _with(trial, disturbance=_with(trial.disturbance, phases=tuple(bare)))


def _without_storage(trial: Trial) -> Trial:
    osds, cluster = trial.osds, trial.cluster
    return _with(trial, osds=osds and _with(osds, slowest=()), cluster=cluster and _with(cluster, problems=()))


def _without_cached_nodes(trial: Trial) -> Trial:
    caches = trial.caches
    return _with(trial, caches=caches and _with(caches, nodes=()))


def _without_steadiness(trial: Trial) -> Trial:
    fields = {"p50_steadiness": None, "p99_steadiness": None}
    return _with(_with_operations(trial, lambda operation: _with(operation, **fields)), steadiness=None)


def _with_short_findings(trial: Trial) -> Trial:
    short = (
        _with(finding, message=quote(finding.message, _REASON_CHARACTERS), clients=()) for finding in trial.findings
    )
    return _with(trial, findings=tuple(short))


def _without_command(trial: Trial) -> Trial:
    return _with(trial, tool=trial.tool and _with(trial.tool, argv=()))


def _with_operations(trial: Trial, change: Callable[[OperationResult], OperationResult]) -> Trial:
    return _with(trial, operations=tuple(map(change, trial.operations)))


def _with(model: M, **changes: object) -> M:
    return model.model_copy(update=changes)


_OPTIONAL: tuple[tuple[str, Callable[[Trial], Trial]], ...] = (
    # No page shows them, and their digests show as well whether a client was replaced.
    ("names of the clients' nodes and volumes", without_names),
    ("series over time", _without_series),
    (
        "use of the hosts",
        lambda trial: _with(trial, slowest=tuple(_with(client, host=None) for client in trial.slowest)),
    ),
    ("slowest clients", _without_slowest),
    ("percentiles of the phases", _without_tails),
    ("slowest OSDs and problems of the cluster", _without_storage),
    ("nodes whose caches were dropped", _without_cached_nodes),
    ("commands of the tools", _without_command),
    (
        "details of findings on attempts that do not count",
        lambda trial: _with_short_findings(trial) if trial.verdict is Verdict.INVALID else trial,
    ),
)

_DIGESTS: tuple[str, Callable[[Trial], Trial]] = (
    "digests of the clients' nodes and volumes",
    lambda trial: _with(trial, place_digests=None),
)
"""Without them, another conductor would not know whether a client was replaced."""

_OPTIONAL_IN_SEARCH: tuple[tuple[str, Callable[[Trial], Trial]], ...] = (
    ("steadiness", _without_steadiness),
    ("details of findings", _with_short_findings),
    (
        "numbers of attempts that do not count",
        lambda trial: _with(trial, operations=()) if trial.verdict is Verdict.INVALID else trial,
    ),
    _DIGESTS,
    ("histograms", without_histograms),
)
