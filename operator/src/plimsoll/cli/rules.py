"""Options that say which change matters; `compare` and `noise` share them."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from plimsoll.measure.compare.metrics import DEFAULT_GATES, Metric, Rule

_DEFAULT = Rule()
_PERCENT = 100
_FINEST_LATENCY = 2
"""Percent. A bin of the histogram is up to 1.6 % of a latency wide."""

F = TypeVar("F", bound=Callable[..., Any])


def rule_options(function: F) -> F:
    """Add the options that `rule_of` reads."""
    options = (
        click.option(
            "--threshold-rate",
            type=click.FloatRange(min=0.1, max=90),
            default=_DEFAULT.rate * _PERCENT,
            show_default=True,
            help="Percent by which a rate may be lower.",
        ),
        click.option(
            "--threshold-latency",
            type=click.FloatRange(min=_FINEST_LATENCY, max=1000),
            default=_DEFAULT.latency * _PERCENT,
            show_default=True,
            help="Percent by which a latency may be higher.",
        ),
        click.option(
            "--gate",
            "gates",
            multiple=True,
            type=click.Choice([metric.value for metric in Metric]),
            default=[metric.value for metric in Metric if metric in DEFAULT_GATES],
            show_default=True,
            help="Metric that decides; may be given more than once. The others are reported.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def rule_of(threshold_rate: float, threshold_latency: float, gates: tuple[str, ...]) -> Rule:
    """Return the rule that the options make."""
    return Rule(
        rate=threshold_rate / _PERCENT,
        latency=threshold_latency / _PERCENT,
        gates=frozenset(Metric(gate) for gate in gates),
    )
