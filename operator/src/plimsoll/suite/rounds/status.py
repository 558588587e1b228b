"""A suite's status: what it remembers, its conditions, and texts for people."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plimsoll.api import suite_status
from plimsoll.api.names import ConditionStatus, SuiteConditionType
from plimsoll.api.status import SuiteCondition, format_time, set_condition
from plimsoll.api.suite_status import BenchmarkSuiteStatus, RoundChildren, SuiteDisplay
from plimsoll.suite.rounds.conditions import Fact
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.outcomes import Outcomes
from plimsoll.suite.rounds.state import ActiveRound, EndedRound, State

Json = dict[str, Any]

_MAX_MESSAGE = 2000
_MAX_DISPLAY = 1024
_MAX_ENVIRONMENT = 16
_MAX_VERSION = 256
"""Maximum length of a version in the environment of a round."""
_STATUS_OF = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}


def status_of(seen: Observed, state: State, facts: Mapping[SuiteConditionType, Fact]) -> Json:
    """Return the whole status. A field that is None will be removed."""
    status = BenchmarkSuiteStatus(
        observed_generation=seen.suite.generation,
        conditions=_conditions(seen, facts),
        digest=state.digest or None,
        requested_round=state.requested or None,
        requested_minute=state.requested_minute or None,
        accepted_round=state.accepted or None,
        next_schedule_time=_text(state.next_time),
        last_schedule_time=_text(state.last_time),
        ceph_version=state.ceph_version or None,
        round=_active_document(state.active) if state.active else None,
        abandoned_run=state.abandoned or None,
        rounds=tuple(map(_ended_document, state.ended)),
        baseline=_baseline_document(state),
        dropped=state.dropped,
        comparisons=state.comparisons.shown,
        comparisons_left_out=state.comparisons.left_out or None,
        hypotheses=state.hypotheses.shown,
        hypotheses_left_out=state.hypotheses.left_out or None,
        display=_display(state, facts),
    )
    known = status.model_dump(mode="json", exclude_none=True)
    names = [field.serialization_alias or name for name, field in BenchmarkSuiteStatus.model_fields.items()]
    return {name: known.get(name) for name in names}


def is_written(status: Json, stored: Mapping[str, Any]) -> bool:
    """Whether the API server has that status."""
    return {name: value for name, value in status.items() if value is not None} == stored


def read_state(status: Mapping[str, Any]) -> State:
    """Return what a stored status remembers.

    Raises:
        pydantic.ValidationError: it is not of this version.

    """
    known = BenchmarkSuiteStatus.model_validate(status)
    return State(
        digest=known.digest or "",
        requested=known.requested_round or "",
        requested_minute=known.requested_minute or 0,
        accepted=known.accepted_round or "",
        next_time=_time(known.next_schedule_time),
        last_time=_time(known.last_schedule_time),
        ceph_version=known.ceph_version or "",
        active=_active(known.round) if known.round else None,
        abandoned=known.abandoned_run or "",
        ended=tuple(map(_ended, known.rounds)),
        first=(known.baseline and known.baseline.first) or 0,
        since=(known.baseline and known.baseline.since) or 0,
        dropped=known.dropped,
        comparisons=Outcomes(shown=known.comparisons, left_out=known.comparisons_left_out or 0),
        hypotheses=Outcomes(shown=known.hypotheses, left_out=known.hypotheses_left_out or 0),
    )


def read_conditions(status: Mapping[str, Any]) -> dict[SuiteConditionType, SuiteCondition]:
    """Return the conditions of a status by type."""
    found = (SuiteCondition.model_validate(one) for one in status.get("conditions", ()))
    return {one.type: one for one in found}


def _conditions(seen: Observed, facts: Mapping[SuiteConditionType, Fact]) -> tuple[SuiteCondition, ...]:
    """Return the conditions. Those about which there is no fact do not hold, and are absent."""
    conditions = tuple(one for kind, one in seen.suite.conditions.items() if kind in facts)
    for kind, fact in facts.items():
        new = SuiteCondition(
            type=kind,
            status=_STATUS_OF[fact.holds],
            observed_generation=seen.suite.generation,
            reason=fact.reason,
            message=fact.message[:_MAX_MESSAGE],
        )
        conditions = set_condition(conditions, new, seen.now)
    return conditions


def _display(state: State, facts: Mapping[SuiteConditionType, Fact]) -> SuiteDisplay:
    """Return texts for people: what the suite does or what is wrong with it, and how its last round ended."""
    ready, active = facts[SuiteConditionType.READY], state.active
    return SuiteDisplay(
        status=ready.reason,
        progress=f"{active.done}/{active.total}" if active else None,
        verdict=state.ended[0].verdict if state.ended else None,
        message=ready.message[:_MAX_DISPLAY],
    )


def _baseline_document(state: State) -> suite_status.Baseline | None:
    known = suite_status.Baseline(first=state.first or None, since=state.since or None)
    return known if state.first or state.since else None


def _active_document(active: ActiveRound) -> suite_status.ActiveRound:
    return suite_status.ActiveRound(
        minute=active.minute,
        seed=active.seed,
        cause=active.cause,
        start_time=format_time(active.started),
        children=RoundChildren(done=active.done, total=active.total),
        current=active.current or None,
        current_uid=active.uid or None,
    )


def _active(known: suite_status.ActiveRound) -> ActiveRound:
    return ActiveRound(
        minute=known.minute,
        seed=known.seed,
        cause=known.cause,
        started=datetime.fromisoformat(known.start_time),
        done=known.children.done,
        total=known.children.total,
        current=known.current or "",
        uid=known.current_uid or "",
    )


def _ended_document(one: EndedRound) -> suite_status.EndedRound:
    return suite_status.EndedRound(
        minute=one.minute,
        cause=one.cause,
        start_time=format_time(one.started),
        completion_time=format_time(one.ended),
        verdict=one.verdict,
        complete=one.complete,
        accepted=one.accepted,
        pinned=one.pinned,
        former=one.former,
        digest=one.digest,
        environment={name: one.environment[name][:_MAX_VERSION] for name in sorted(one.environment)[:_MAX_ENVIRONMENT]},
        comparisons=dict(one.counts),
    )


def _ended(known: suite_status.EndedRound) -> EndedRound:
    return EndedRound(
        minute=known.minute,
        cause=known.cause,
        started=datetime.fromisoformat(known.start_time),
        ended=datetime.fromisoformat(known.completion_time),
        verdict=known.verdict,
        complete=known.complete,
        accepted=known.accepted,
        pinned=known.pinned,
        former=known.former,
        digest=known.digest,
        environment=known.environment,
        counts=known.comparisons,
    )


def _text(time: datetime | None) -> str | None:
    return format_time(time) if time is not None else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
