"""Messages about clients and cluster, the environment of the results, and what `kubectl get` shows of a result."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from plimsoll.api.environment import Environment, Extremes
from plimsoll.api.line import NOTHING_TRIED, LineSearch
from plimsoll.api.names import Operation, format_duration
from plimsoll.api.operation import OperationSummary
from plimsoll.api.result import ResultStatus
from plimsoll.api.status import ResultDisplay
from plimsoll.conductor.roster import Client, Roster
from plimsoll.measure.checks.judge import reasons_of
from plimsoll.measure.line.summary import progress_text, short_text
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import iops_of
from plimsoll.protocol.messages import AgentState

_MAX_CHARACTERS = 64

MAX_FACTS = 16
"""Values of one fact that are kept, if the clients differ."""


def timestamp(wall: int) -> str:
    """Format Unix nanoseconds as RFC 3339 in UTC, with milliseconds."""
    text = datetime.fromtimestamp(wall / 1e9, tz=UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def names(clients: Sequence[int]) -> str:
    """Return `client 3` or `clients 1, 2, 5`; of many clients, the first and the number of others."""
    plural = "s" if len(clients) > 1 else ""
    return f"client{plural} {_first([str(client) for client in clients], 12, ', ', ' and ')}"


def failures(clients: Iterable[Client]) -> str:
    """Return the messages of the clients that failed; empty if none did."""
    failed = [client for client in clients if client.is_in(AgentState.FAILED)]
    return "; ".join(f"client {client.number} on {client.node}: {client.message}" for client in failed)


def why_not_ready(roster: Roster, missing: Sequence[int], ready_seconds: int) -> str:
    """Return why the clients were not ready in time."""
    if missing:
        return f"{names(missing)} did not register or reconnect within timeouts.readySeconds ({ready_seconds} s)"
    busy = [client for client in roster if not client.is_quiet]
    who, why = names([client.number for client in busy]), failures(busy)
    return f"{who} did not confirm within {ready_seconds} s that the last tool has stopped{why and f': {why}'}"


def shortened(problems: Sequence[str]) -> str:
    """Return the problems as one text; of many problems, the first and the number of others."""
    return _first(problems, 6, "; ", "; and ")


def _first(texts: Sequence[str], limit: int, separator: str, before_more: str) -> str:
    more = f"{before_more}{len(texts) - limit} more" if len(texts) > limit else ""
    return separator.join(texts[:limit]) + more


def environment(roster: Roster, storage: Environment) -> Environment | None:
    """Return the environment of the results: nodes, each distinct fact of the clients, and the storage's description.

    None before a client has registered. Clients without a prepared data set do not count for its size.
    """
    nodes = sorted(roster.client_nodes)
    if not nodes:
        return None
    sizes = [client.prepared_bytes for client in roster if client.prepared_bytes]
    observed = Environment(
        nodes=tuple(nodes[:64]),
        node_count=len(nodes),
        data_set_bytes=Extremes(min=min(sizes, default=0), max=max(sizes, default=0)),
    )
    # The clients' facts come first, so that they do not replace what the conductor knows.
    return Environment.model_validate(_facts(roster)).merged(observed).merged(storage)


def _facts(roster: Roster) -> dict[str, JsonValue]:
    """Return the clients' facts: one value if they agree, otherwise all values."""
    facts: dict[str, list[JsonValue]] = {}
    for client in roster:
        for name, value in client.facts.items():
            values = facts.setdefault(name, [])
            if value not in values and len(values) < MAX_FACTS:
                values.append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in facts.items()}


def result_display(status: ResultStatus, repetitions: int, search: LineSearch | None = None) -> ResultDisplay:
    """Return a point's columns; a point without numbers shows only its number of trials and the reason.

    Of a search the trials are its probes, and the line replaces rates and latencies.
    """
    reasons = reasons_of(status)
    more = f" +{len(reasons) - 1}" if len(reasons) > 1 else ""
    # The main reason of the verdict, and the number of others: `ClientThrottled +2`.
    reason = f"{reasons[0]}{more}"[:_MAX_CHARACTERS] if reasons else None
    if search is not None:
        text = short_text(status.line, search)[:_MAX_CHARACTERS] if status.line else None
        return ResultDisplay(line=text, trials=progress_text(status.line or NOTHING_TRIED), reason=reason)
    summary = status.summary
    trials = f"{summary.trials if summary else 0}/{repetitions}"
    operations = summary.operations if summary else ()
    # Without syncs, unless there are only syncs.
    shown = tuple(summed for summed in operations if summed.operation is not Operation.SYNC) or operations
    if not shown:
        return ResultDisplay(trials=trials, reason=reason)
    return ResultDisplay(
        operation=_joined(shown, lambda operation: operation.operation.value),
        iops=_joined(shown, _rate),
        bytes_per_second=_joined(shown, lambda operation: f"{operation.bytes_per_second.mean / 2**20:,.1f} MiB/s"),
        p99=_joined(shown, _p99),
        trials=trials,
        reason=reason,
    )


def _joined(operations: Iterable[OperationSummary], text: Callable[[OperationSummary], str]) -> str:
    return " / ".join(map(text, operations))[:_MAX_CHARACTERS]


def _rate(operation: OperationSummary) -> str:
    """Return the operations per second; a dash if they are not counted."""
    statistic = iops_of(operation)
    if statistic is None:
        return "-"
    if statistic.low is None or statistic.high is None:
        return rate_text(statistic.mean)
    return rate_text(statistic.mean, (statistic.high - statistic.low) / 2)


def _p99(operation: OperationSummary) -> str:
    percentile = operation.percentiles.get("99")
    return "-" if percentile is None else format_duration(percentile.mean)
