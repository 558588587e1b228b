"""The rates of a trial: what a tool reports, and its rates in the common window."""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from plimsoll.api.names import Operation
from plimsoll.api.operation import OperationResult, Rates
from plimsoll.measure.histogram import merge_latencies
from plimsoll.measure.sample import OperationSample
from plimsoll.measure.timeline import Amount, Interval, Share, add, covering, rounded_iops, series_of

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantities:
    """The quantities that a tool reports in addition to bytes and times."""

    operations: bool = True  # the number of completed operations
    cells: bool = False  # rates between pairs of clients, the cells of a matrix

    @property
    def unit(self) -> str:
        return "operations" if self.operations else "bytes"

    def amount(self, ios: float, volume: float) -> float:
        """Return operations, or bytes if the tool does not count operations."""
        return ios if self.operations else volume


ALL_QUANTITIES = Quantities()  # for a tool that counts operations and has no servers


def counts_operations(iops: float, bytes_per_second: float) -> bool:
    """Whether a recorded rate counts operations: a tool that counts only bytes records bytes without operations."""
    return bool(iops) or not bytes_per_second


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by key, both in the order given."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_operation(shares: Iterable[Share]) -> dict[Operation, list[Share]]:
    """Return the clients' shares of each operation, in the order of `Operation`."""
    groups = grouped(shares, lambda share: share.sample.operation)
    return {operation: groups[operation] for operation in Operation if operation in groups}


def rates_of(shares: Sequence[Share], *, common: Interval | None, whole: Interval) -> OperationResult:
    """Return the numbers of one operation, whose steadiness is not judged, over all clients that did it.

    `common` is the common window of all clients of the trial, `whole` the time from their first start to their last
    end. Without a common window, the headline covers the whole run, or the operation's own phase.
    """
    samples = [share.sample for share in shares]
    everything = _total(samples)
    phase = covering(share.interval for share in shares) if any(share.is_phase for share in shares) else None
    whole_run = everything.per_second((phase or whole).length)
    headline = whole_run
    if common is not None:
        headline = add([share.within(common) for share in shares]).per_second(common.length)
    sum_of_rates = add([_total([share.sample]).per_second(share.interval.length) for share in shares])
    return OperationResult(
        operation=samples[0].operation,
        ios=sum(sample.ios for sample in samples),
        bytes=sum(sample.bytes for sample in samples),
        rates=_rounded(headline),
        whole_run=_rounded(whole_run),
        sum_of_rates=_rounded(sum_of_rates),
        # The unrounded rates; a rate near 0, an operation in eleven days, has no meaningful bias.
        bias=sum_of_rates.ios / headline.ios - 1 if headline.ios > 1e-6 else None,  # noqa: PLR2004
        latency=merge_latencies(sample.latency for sample in samples),
        processor_percent=max(
            (sample.processor_percent for sample in samples if sample.processor_percent is not None), default=None
        ),
        series=None if common is None else series_of(shares, common),
    )


def _total(samples: Collection[OperationSample]) -> Amount:
    return Amount(ios=sum(sample.ios for sample in samples), bytes=sum(sample.bytes for sample in samples))


def rate_text(rate: float, half_width: float | None = None) -> str:
    """Return operations per second for people, with at least three digits: `1,234 ± 5`, `2.52 ± 0.03`."""
    decimals = max(0, 2 - math.floor(math.log10(max(rate, 0.01)))) if rate else 0
    text = f"{rate:,.{decimals}f}"
    return text if half_width is None else f"{text} ± {half_width:,.{decimals}f}"


def _rounded(amount: Amount) -> Rates:
    return Rates(iops=rounded_iops(amount.ios), bytes_per_second=round(amount.bytes))


def mean_rates(rates: Sequence[Rates]) -> Rates:
    volume = fmean(rate.bytes_per_second for rate in rates)
    return _rounded(Amount(ios=fmean(rate.iops for rate in rates), bytes=volume))
