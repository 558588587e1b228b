"""The clients to prepare, the steps of a point's tool, and the time limits of an attempt."""

from plimsoll.api.names import Layer
from plimsoll.api.state import TrialKey
from plimsoll.conductor.ledger import Ledger
from plimsoll.conductor.phases import Attempt, JudgeAttempt
from plimsoll.conductor.roster import Client, Roster
from plimsoll.conductor.timings import Timings
from plimsoll.measure.intake import TrialFacts
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.line import at_load
from plimsoll.protocol.messages import AgentState
from plimsoll.tools.base import StepKind, Timing, ToolParameters
from plimsoll.tools.cast import Cast
from plimsoll.tools.registry import TOOLS


def new_attempt(ledger: Ledger, key: TrialKey, started_at: str) -> Attempt:
    """Return an attempt that begins once all clients are prepared; that of a search at the load that it needs."""
    plan = ledger.plan
    point, offer = plan.point(key.point), ledger.offer(key)
    return Attempt(
        key=key,
        point=point if offer is None else at_load(point, offer.search, offer.load),
        started_at=started_at,
        new_data_set=plan.renews_data_sets,
        offer=offer,
    )


def has_step(point: Point, step: StepKind) -> bool:
    """Whether a trial of the point has such a step."""
    return step in TOOLS[point.tool].steps(_parameters(point))


def cast_of(point: Point, roster: Roster) -> Cast:
    """Return the clients of each round of a trial of the point."""
    return TOOLS[point.tool].cast(_parameters(point), tuple(roster), point.clients)


def unprepared_clients(plan: Plan, roster: Roster, *, continues: bool = False) -> list[Client]:
    """Return the clients that have to prepare their data sets before the next attempt; servers have none.

    With a new data set for each trial, those are also clients whose tool has worked since, unless the attempt has begun
    and `continues` with its next round.
    """
    if plan.volume is None:
        return []
    renews = plan.renews_data_sets and not continues
    clients = [client for client in roster if not client.serves]
    return [client for client in clients if not client.prepared_bytes or (renews and client.data_set_used)]


def needs_staging(attempt: Attempt) -> bool:
    """Whether clients have something to do before the current round can be armed."""
    return has_step(attempt.point, StepKind.PREPARE) or bool(attempt.round.serving)


def unready_clients(attempt: Attempt, roster: Roster) -> tuple[int, ...]:
    """Return the clients of the current round that are neither staged nor serving yet."""
    states = [(client, AgentState.STAGED) for client in roster.get(attempt.round.loading)]
    states += [(client, AgentState.SERVING) for client in roster.get(attempt.round.serving)]
    return tuple(client.number for client, state in states if not client.is_in(state))


def unarmed_clients(attempt: Attempt, roster: Roster) -> tuple[int, ...]:
    """Return the clients of the current round that are not armed yet."""
    return tuple(client.number for client in roster.get(attempt.round.loading) if not client.is_in(AgentState.ARMED))


def judging(attempt: Attempt, plan: Plan, roster: Roster) -> JudgeAttempt:
    """Return the effect that judges the documents of the attempt's current round by its plan."""
    tool = TOOLS[attempt.point.tool]
    facts = TrialFacts(
        clients=attempt.round.loading,
        runtime_seconds=attempt.point.runtime_seconds,
        ramp_seconds=attempt.point.ramp_seconds,
        t0_nanoseconds=attempt.t0,
        windowed=tool.windowed,
        ends_when_done=tool.ends_when_done(_parameters(attempt.point)),
        new_data_set=attempt.new_data_set,
        least_runtime_seconds=tool.least_runtime_seconds,
        measures_network=tool.layer is Layer.NETWORK,
        quantities=tool.quantities,
        network_bytes_per_second=plan.network_bytes_per_second,
        offer=attempt.offer,
        nodes={client.number: client.node for client in roster.get(attempt.round.members)},
    )
    return JudgeAttempt(facts=facts, documents=attempt.documents)


def staging_seconds(point: Point, timings: Timings) -> float:
    """Return how long the clients may take to get ready for arming."""
    timing = Timing(ramp_seconds=point.ramp_seconds, runtime_seconds=point.runtime_seconds)
    planned = _parameters(point).preparation_seconds(timing)
    return planned + timings.work_factor * (point.ramp_seconds + point.runtime_seconds) + timings.staging_grace


def overrun_seconds(point: Point, timings: Timings) -> float:
    """Return how long a tool may exceed ramp and runtime: longer if it is not time-based, or cleans up."""
    trial = point.ramp_seconds + point.runtime_seconds
    work = 0 if TOOLS[point.tool].windowed else timings.work_factor * trial
    cleaning = trial + timings.clean_up_grace if has_step(point, StepKind.CLEAN_UP) else 0
    return timings.overrun_grace + work + cleaning


def _parameters(point: Point) -> ToolParameters:
    parameters: ToolParameters = TOOLS[point.tool].parameters.model_validate(point.parameters)
    return parameters
