"""The size limit of results, which every watcher of the API server receives whole, and what is dropped first."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from plimsoll.api.model import Model
from plimsoll.api.names import Verdict
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.measure.checks.repetitions import without_names
from plimsoll.measure.text import quote

MAX_STATUS_BYTES = 248 * 2**10  # the part of 256 KiB that metadata and specification leave to a status
_REASON_CHARACTERS = 80

M = TypeVar("M", bound=Model)

_LEFT_OUT = "left out, because the result would be larger than 256 KiB"
_REMEDY = "; use fewer repetitions to have them"
_HISTOGRAMS = "operations.latency.histogram"
_SERIES = "operations.series"
_STEADINESS = ("operations.p50_steadiness", "operations.p99_steadiness", "steadiness")


def replaced_attempt(trial: Trial) -> Trial:
    """Return the part of a repeated attempt to keep: its outcome, the reason, its rates and its percentiles."""
    details = ("slowest", "caches.nodes", "osds.slowest", "cluster.problems", "tool.argv", "disturbance")
    return _cleared(trial, *details, _HISTOGRAMS, _SERIES, *_STEADINESS)


def bare_attempt(trial: Trial, *, has_rates: bool) -> Trial:
    """Return what to keep of a repeated attempt of a search: outcome and reasons, if `has_rates` also the rates."""
    bare = _cleared(_with_short_findings(replaced_attempt(trial)), "warnings", "hosts", "tool")
    return bare if has_rates else _cleared(bare, "operations")


def fit(status: ResultStatus) -> ResultStatus:
    """Return a status below `MAX_STATUS_BYTES`: if needed without `_OPTIONAL` parts, which trials that count name.

    Last to go are parts of the matrix. Histograms, from which the summary is computed, are kept except in a search.
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
        status = status.model_copy(update={"trials": tuple(warned)})
    if _is_too_large(status) and status.summary is not None and status.summary.matrix is not None:
        # The means of the pairs do not need these columns.
        columns = (f"summary.matrix.{name}" for name in ("least_bytes_per_second", "least_iops", "retransmits"))
        *others, last = status.trials
        last = _with_warning(last, ["lowest rates and retransmits of pairs"], _REMEDY)
        status = _cleared(status, *columns).model_copy(update={"trials": (*others, last)})
    return status


def _is_too_large(status: ResultStatus) -> bool:
    return len(status.model_dump_json(exclude_none=True).encode()) > MAX_STATUS_BYTES


def _with_warning(trial: Trial, omitted: Sequence[str], remedy: str) -> Trial:
    warning = f"{', '.join(omitted)} {_LEFT_OUT}{remedy}"
    return trial.model_copy(update={"warnings": (*trial.warnings, warning)})


def _with_short_findings(trial: Trial) -> Trial:
    short = [
        finding.model_copy(update={"message": quote(finding.message, _REASON_CHARACTERS), "clients": ()})
        for finding in trial.findings
    ]
    return trial.model_copy(update={"findings": tuple(short)})


def _cleared(model: M, *paths: str) -> M:
    """Return a model with the defaults of fields at these paths, such as `slowest.host` of all entries of a list."""
    for path in paths:
        name, _, rest = path.partition(".")
        value = getattr(model, name)
        if not rest:
            value = type(model).model_fields[name].get_default(call_default_factory=True)
        elif isinstance(value, tuple):
            value = tuple(_cleared(entry, rest) for entry in value)
        elif value is not None:
            value = _cleared(value, rest)
        model = model.model_copy(update={name: value})
    return model


def _without(*paths: str) -> Callable[[Trial], Trial]:
    return lambda trial: _cleared(trial, *paths)


def _if_invalid(change: Callable[[Trial], Trial]) -> Callable[[Trial], Trial]:
    return lambda trial: change(trial) if trial.verdict is Verdict.INVALID else trial


without_histograms = _without(_HISTOGRAMS)
without_distributions = _without(_HISTOGRAMS, _SERIES)  # which matter only for trials that count

_OPTIONAL: tuple[tuple[str, Callable[[Trial], Trial]], ...] = (
    # No page shows them, and their digests show as well whether a client was replaced.
    ("names of the clients' nodes and volumes", without_names),
    ("series over time", _without(_SERIES)),
    ("use of the hosts", _without("slowest.host")),
    ("slowest clients", _without("slowest")),
    ("percentiles of the phases", _without("disturbance.phases.operations.percentiles")),
    ("slowest OSDs and problems of the cluster", _without("osds.slowest", "cluster.problems")),
    ("nodes whose caches were dropped", _without("caches.nodes")),
    ("commands of the tools", _without("tool.argv")),
    ("details of findings on attempts that do not count", _if_invalid(_with_short_findings)),
)

# Without them, another conductor would not know whether a client was replaced.
_DIGESTS = ("digests of the clients' nodes and volumes", _without("place_digests"))
_OPTIONAL_IN_SEARCH: tuple[tuple[str, Callable[[Trial], Trial]], ...] = (
    ("steadiness", _without(*_STEADINESS)),
    ("details of findings", _with_short_findings),
    ("numbers of attempts that do not count", _if_invalid(_without("operations"))),
    _DIGESTS,
    ("histograms", without_histograms),
)
