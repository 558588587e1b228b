"""Whether the points of a suite's variants can answer its comparisons and hypotheses."""

from collections.abc import Iterator, Mapping

from plimsoll.api.errors import Problem
from plimsoll.api.hypothesis import Hypothesis, Quantity
from plimsoll.api.suite import SuiteSpec
from plimsoll.measure.hypotheses.select import VariantRun, impossible
from plimsoll.plan.document import Plan


def unanswerable(spec: SuiteSpec, plans: Mapping[str, Plan]) -> Iterator[Problem]:
    """Yield the comparisons and hypotheses that no measurement of these plans, by their variants, can answer."""
    yield from _nothing_to_compare(spec, plans)
    yield from _nothing_to_decide(spec, plans)


def _nothing_to_compare(spec: SuiteSpec, plans: Mapping[str, Plan]) -> Iterator[Problem]:
    for index, one in enumerate(spec.comparisons):
        sides = [{point.name for point in plans[variant].points} for variant in one.variants or ()]
        if one.variants is not None and not set.intersection(*sides):
            names = " and ".join(one.variants)
            remedy = f"compares nothing, because variants {names} have no workload in common; compare others"
            yield Problem(field=f"spec.comparisons[{index}]", remedy=remedy)


def _nothing_to_decide(spec: SuiteSpec, plans: Mapping[str, Plan]) -> Iterator[Problem]:
    runs = [VariantRun(variant=name, name=plan.run.name, points=plan.points) for name, plan in plans.items()]
    for index, hypothesis in enumerate(spec.hypotheses):
        for problem in (*impossible(hypothesis, runs), *_not_measured(hypothesis, plans)):
            field, _, remedy = problem.partition(": ")
            yield Problem(field=f"spec.hypotheses[{index}].{field}", remedy=remedy)


def _not_measured(hypothesis: Hypothesis, plans: Mapping[str, Plan]) -> Iterator[str]:
    """Yield which selector asks for a line that is not searched for, or for anything else of a search."""
    for field, selector in hypothesis.selectors:
        of_variants = [plan for name, plan in plans.items() if selector.variant in (None, name)]
        points = [point for plan in of_variants for point in plan.points if point.workload == selector.workload]
        is_line = selector.quantity is Quantity.LINE
        if is_line and any(point.line is None for point in points):
            yield f"{field}.quantity: workload {selector.workload} does not search for the line; set line in it"
        elif not is_line and any(point.line is not None for point in points):
            yield (
                f"{field}.quantity: workload {selector.workload} searches for the line, so its trials have different "
                f"loads; choose {Quantity.LINE}"
            )
