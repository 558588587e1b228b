"""Operations and bytes per second of one operation over all clients of a trial, calculated in three ways.

    rates        = sum over clients of their I/O inside the common window / |common|
    whole_run    = sum over clients of all their I/O / (max(end) - min(start))
    sum_of_rates = sum over clients of (all their I/O / their own runtime)
    bias         = sum_of_rates / rates - 1

Of a tool that does one operation after the other, an operation's time is that of its own phase, as if all clients had
begun the phase together: `rates` and `whole_run` divide by the longest. Phases that did not overlap make it too high.

If the storage is the bottleneck, the clients that run share its total, so `sum_of_rates` overstates it by
spread / runtime, however many clients there are. It is published because other tools print it.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

from plimsoll.api.result import Rates
from plimsoll.measure.series import Amount, Share, add, rounded_iops
from plimsoll.measure.window import Interval, union_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRates:
    """The rates of one operation.

    Attributes:
        measured: the I/O behind the headline: that in the window.
        bias: of the operations per second; None without I/O in the window.

    """

    measured: Amount
    rates: Rates
    whole_run: Rates
    sum_of_rates: Rates
    bias: float | None


def rates_of(shares: Collection[Share], *, common: Interval | None, whole: Interval) -> OperationRates:
    """Return the rates of one operation over all clients with that operation.

    `common` is the common window of all clients of the trial, `whole` the time from their first start to their last
    end. Without a common window, for a tool whose clients do a fixed amount of work, the headline is that of the whole
    run, or of the operation's own phase.
    """
    everything = total(shares)
    phase = union_interval([share.interval for share in shares]) if any(share.is_phase for share in shares) else None
    whole_run = everything.per_second((phase or whole).length)
    measured = everything if common is None else add([share.within(common) for share in shares])
    headline = whole_run if common is None else measured.per_second(common.length)
    own = add([total([share]).per_second(share.interval.length) for share in shares])
    return OperationRates(
        measured=measured,
        rates=_rounded(headline),
        whole_run=_rounded(whole_run),
        sum_of_rates=_rounded(own),
        bias=_bias(own.ios, headline.ios),
    )


def total(shares: Collection[Share]) -> Amount:
    """Return all I/O of the clients."""
    return Amount(ios=sum(share.sample.ios for share in shares), bytes=sum(share.sample.bytes for share in shares))


def rate_text(rate: float, half_width: float | None = None) -> str:
    """Return operations per second for people, with at least three digits: `1,234 ± 5`, `2.52 ± 0.03`."""
    decimals = max(0, 2 - math.floor(math.log10(max(rate, 0.01)))) if rate else 0
    text = f"{rate:,.{decimals}f}"
    return text if half_width is None else f"{text} ± {half_width:,.{decimals}f}"


def _rounded(amount: Amount) -> Rates:
    return Rates(iops=rounded_iops(amount.ios), bytes_per_second=round(amount.bytes))


def _bias(own: float, headline: float) -> float | None:
    """Compare the unrounded rates; a rate near 0 has no meaningful bias."""
    return own / headline - 1 if headline > 1e-6 else None  # noqa: PLR2004  # one operation in eleven days
