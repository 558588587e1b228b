"""How large a result may grow, and what is left out first. Every watcher of the API server gets it as a whole."""

from collections.abc import Callable

from plimsoll.api.result import Latency, OperationResult, ResultStatus, Trial

MAX_STATUS_BYTES = 248 * 2**10
"""What 256 KiB leave to a status, beside metadata and specification."""


def without_distributions(trial: Trial) -> Trial:
    """Return a trial without histograms and series: nobody merges those of one that does not count."""
    return _with_operations(trial, _without_distribution)


def outcome_of(trial: Trial) -> Trial:
    """Return what of an attempt is worth keeping once it has been repeated: how it ended, why, and its rates."""
    return _with_operations(_without_command(_without_storage(_without_slowest(trial))), _rates_only)


def fit(status: ResultStatus) -> ResultStatus:
    """Return a status below `MAX_STATUS_BYTES`: without series, hosts, slowest clients and OSDs, commands, as needed.

    Each trial's warnings say what was left out. Histograms stay: the summary is made from them.
    """
    for name, without in _OPTIONAL:
        if len(status.model_dump_json(exclude_none=True).encode()) <= MAX_STATUS_BYTES:
            break
        warning = f"{name} left out, because the result would be larger than 256 KiB; use fewer repetitions to have it"
        trials = tuple(_warned(trial, without(trial), warning) for trial in status.trials)
        status = status.model_copy(update={"trials": trials})
    return status


def _warned(before: Trial, after: Trial, warning: str) -> Trial:
    return after if after == before else after.model_copy(update={"warnings": (*after.warnings, warning)})


def _without_series(trial: Trial) -> Trial:
    return _with_operations(trial, lambda operation: operation.model_copy(update={"series": None}))


def _without_hosts(trial: Trial) -> Trial:
    return trial.model_copy(
        update={"slowest": tuple(client.model_copy(update={"host": None}) for client in trial.slowest)}
    )


def _without_slowest(trial: Trial) -> Trial:
    return trial.model_copy(update={"slowest": ()})


def _without_storage(trial: Trial) -> Trial:
    osds, cluster = trial.osds, trial.cluster
    return trial.model_copy(
        update={
            "osds": osds and osds.model_copy(update={"slowest": ()}),
            "cluster": cluster and cluster.model_copy(update={"problems": ()}),
        }
    )


def _without_command(trial: Trial) -> Trial:
    return trial.model_copy(update={"tool": trial.tool and trial.tool.model_copy(update={"argv": ()})})


_OPTIONAL: tuple[tuple[str, Callable[[Trial], Trial]], ...] = (
    ("series over time", _without_series),
    ("use of the hosts", _without_hosts),
    ("slowest clients", _without_slowest),
    ("slowest OSDs and what was wrong with the cluster", _without_storage),
    ("commands of the tools", _without_command),
)


def _without_distribution(operation: OperationResult) -> OperationResult:
    latency = operation.latency.model_copy(update={"histogram": None})
    return operation.model_copy(update={"latency": latency, "series": None})


def _rates_only(operation: OperationResult) -> OperationResult:
    latency = Latency(kind=operation.latency.kind, count=operation.latency.count)
    return operation.model_copy(update={"latency": latency, "series": None, "steady_state": None})


def _with_operations(trial: Trial, change: Callable[[OperationResult], OperationResult]) -> Trial:
    return trial.model_copy(update={"operations": tuple(map(change, trial.operations))})
