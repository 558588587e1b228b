"""Options of `compare` and `noise` for the changes that matter."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from plimsoll.measure.compare.values import DEFAULT_GATES, OF_TRIALS, Metric, RegressionRule

_DEFAULT = RegressionRule()
_PERCENT = 100
_FINEST_LATENCY = 2
"""Percent. A bin of the histogram is up to 1.6 % of a latency wide."""

F = TypeVar("F", bound=Callable[..., Any])


def rule_options(function: F) -> F:
    """Add the options of `rule_of`."""
    options = (
        click.option(
            "--threshold-rate",
            type=click.FloatRange(min=0.1, max=90),
            default=_DEFAULT.rate * _PERCENT,
            show_default=True,
            help="Tolerated decrease of a rate, in percent.",
        ),
        click.option(
            "--threshold-latency",
            type=click.FloatRange(min=_FINEST_LATENCY, max=1000),
            default=_DEFAULT.latency * _PERCENT,
            show_default=True,
            help="Tolerated increase of a latency, in percent.",
        ),
        click.option(
            "--gate",
            "gates",
            multiple=True,
            type=click.Choice([metric.value for metric in OF_TRIALS]),
            default=[metric.value for metric in OF_TRIALS if metric in DEFAULT_GATES],
            show_default=True,
            help="Metric that gates; may be repeated. The others are only reported. The line of a search always gates.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def rule_of(threshold_rate: float, threshold_latency: float, gates: tuple[str, ...]) -> RegressionRule:
    """Return the rule of these options."""
    return RegressionRule(
        rate=threshold_rate / _PERCENT,
        latency=threshold_latency / _PERCENT,
        gates=frozenset(Metric(gate) for gate in gates),
    )
