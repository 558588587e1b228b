"""The orders of a plan's steps."""

from plimsoll.conductor.phases import Attempt
from plimsoll.plan.document import Plan
from plimsoll.plan.order import client_seed
from plimsoll.protocol.messages import Arm, Go, Order, Prepare, Stage


def prepare(plan: Plan, client: int) -> Prepare:
    """Return the order to discard, prefill and overwrite."""
    return Prepare(
        discard=plan.prepare.discard,
        prefill=plan.prepare.prefill,
        precondition=plan.prepare.precondition,
        fill_percent=plan.prepare.fill_percent,
        seed=client_seed(plan.seed, point="prefill", pass_number=0, client=client),
    )


def stage(plan: Plan, attempt: Attempt, client: int) -> Stage:
    """Return the order to write what the attempt is going to read. The seed is that of `arm`."""
    point = attempt.point
    return Stage(
        trial=attempt.key,
        tool=point.tool,
        parameters=point.parameters,
        ramp_seconds=point.ramp_seconds,
        runtime_seconds=point.runtime_seconds,
        seed=_seed(plan, attempt, client),
    )


def arm(plan: Plan, attempt: Attempt, client: int) -> Arm:
    """Return the order to get ready for T0."""
    point = attempt.point
    return Arm(
        trial=attempt.key,
        tool=point.tool,
        parameters=point.parameters,
        ramp_seconds=point.ramp_seconds,
        runtime_seconds=point.runtime_seconds,
        seed=_seed(plan, attempt, client),
        t0_nanoseconds=attempt.t0,
    )


def go(attempt: Attempt) -> Go:
    """Return the word that everybody is armed."""
    return Go(trial=attempt.key)


def is_of(order: Order, attempt: Attempt) -> bool:
    """Tell whether an order belongs to that attempt."""
    return isinstance(order, Stage | Arm | Go) and order.trial == attempt.key


def _seed(plan: Plan, attempt: Attempt, client: int) -> int:
    return client_seed(plan.seed, point=attempt.point.name, pass_number=attempt.key.pass_number, client=client)
