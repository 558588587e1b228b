"""What all handlers share: one object in kopf's memo."""

from dataclasses import dataclass, field

from plimsoll.handlers.results import KnownResults
from plimsoll.metrics.instruments import Instruments
from plimsoll.reconcile.run import RunReconciler
from plimsoll.reconcile.suites.steps import SuiteReconciler


@dataclass(slots=True, kw_only=True)
class Context:
    """The operator's components.

    Attributes:
        runs: reconciles the runs.
        suites: reconciles the suites.
        instruments: the operator's metrics of itself.
        results: the metrics of every result.

    """

    runs: RunReconciler
    suites: SuiteReconciler
    instruments: Instruments = field(default_factory=Instruments)
    results: KnownResults = field(default_factory=KnownResults)
