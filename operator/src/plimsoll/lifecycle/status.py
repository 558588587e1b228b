"""A run's status: conditions, progress, headline, estimated end. Derived from scratch at every look."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from math import ceil
from statistics import fmean, median
from typing import Any

from pydantic import JsonValue

from plimsoll.api.json_reader import printable_text
from plimsoll.api.line import Line
from plimsoll.api.names import ConditionStatus, ConditionType, Outcome, RunPhase, Verdict, format_duration
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.status import (
    MAX_HEADLINES,
    BenchmarkRunStatus,
    Condition,
    Display,
    Headline,
    HeadlineLine,
    Points,
    RunState,
    format_time,
    set_condition,
)
from plimsoll.lifecycle.children import time_of
from plimsoll.lifecycle.decision import Fact, Situation, Stage
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.provisioning import is_settled
from plimsoll.lifecycle.queue import hold_of
from plimsoll.lifecycle.run import Run
from plimsoll.measure.line.summary import headline_text, short_text
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.expand import estimate, most_trials, renewal_seconds, trial_seconds
from plimsoll.tools.registry import TOOLS

_TOLERATED_SECONDS = 10.0  # how wrong an estimate may be before it is replaced
_TOLERATED_SHARE = 0.1  # the same as a share of the remaining time: a prefill writes a status now and then
_MAX_LEFT_SECONDS = 1e9  # some thirty years: a longer estimate could exceed what a time can be
_MAX_MESSAGE = 2000
_MAX_DISPLAY = 1024
_MAX_ENVIRONMENT = 64
_MAX_TEXT = 256
_MAX_SHORT = 64
_MAX_VALUE = 1024  # maximum length of a value of the environment in the API
_FIELDS = {"name": "storageClass", "parameters": "storageClassParameters"}
"""Field of a StorageClass -> its name in the flat environment of the status."""

Json = dict[str, Any]

_STATUS_OF = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}


def status_of(run: Run, seen: Observed, situation: Situation, now: datetime) -> Json:
    """Return the whole status. A field that is None will be removed."""
    end = estimated_end(run, seen, now) if situation.ending is None else None
    if end is not None and is_late(end, now):
        remark = f"behind schedule: expected to be measured by {format_time(end)}"
        message = f"{situation.message}; {remark}" if situation.message else remark
        situation = replace(situation, message=message)
    facts = {**situation.facts, **_summary(situation)}
    conditions = _conditions(run, facts, now)
    if seen.plan is None and run.status.get("completionTime"):
        # A finished run keeps its numbers although the objects they were read from were deleted.
        return updated_status(run, facts, now)
    headline, job = tuple(_headlines(seen)), seen.conductor_job
    is_admitted = (ConditionType.ADMITTED, ConditionStatus.TRUE) in {(entry.type, entry.status) for entry in conditions}
    admitted = situation.facts.get("Admitted")
    final = [result for result in seen.results.values() if result.final]
    points = Points(
        total=len(seen.plan.points) if seen.plan else 0,
        completed=len(final),
        invalid=sum(result.verdict is Verdict.INVALID for result in final),
    )
    ended = run.status.get("completionTime") or (format_time(now) if situation.ending else None)
    status = BenchmarkRunStatus(
        observed_generation=run.generation,
        conditions=conditions,
        start_time=run.status.get("startTime") or (format_time(now) if admitted and admitted.holds else None),
        conductor_start_time=run.status.get("conductorStartTime") or (format_time(job.created) if job else None),
        completion_time=ended,
        estimated_completion_time=format_time(end) if end and not ended else None,
        rook_cluster=run.default_cluster,
        plan_sha256=situation.plan_sha256 or run.status.get("planSha256"),
        hold=hold_of(run, seen, now) if not ended and is_admitted else None,
        namespace_served_time=(seen.turn.namespace_served or None) if not ended and not is_admitted else None,
        points=points,
        headline=headline[:MAX_HEADLINES],
        environment=dict(_environment(seen)),
        display=_display(seen, situation, headline),
    )
    dumped = status.model_dump(mode="json", exclude_none=True)
    names = [field.serialization_alias or name for name, field in BenchmarkRunStatus.model_fields.items()]
    return {name: dumped.get(name) for name in names}


def status_of_removal(run: Run, cleaned_up: Fact, now: datetime) -> Json:
    facts = {"CleanedUp": cleaned_up, "Reconciling": Fact.true(Reason.CLEANING_UP, cleaned_up.message)}
    before = run.conditions.get(ConditionType.SUCCEEDED)
    if before is not None and before.status is ConditionStatus.UNKNOWN:
        facts["Succeeded"] = Fact(holds=None, reason=Reason.CLEANING_UP, message="the run was deleted before it ended")
    display = {**run.status.get("display", {}), "status": Stage.CLEANING_UP.value}
    display["message"] = cleaned_up.message[:_MAX_DISPLAY]
    return updated_status(run, facts, now) | {"display": display, "estimatedCompletionTime": None}


def progress_message(seen: Observed) -> str:
    state = seen.state
    if state is None or state.current is None:
        return ""
    trial = f"trial {state.trials_done + 1} of {state.trials_total}"
    key = state.current.key
    again = f", attempt {key.attempt + 1}" if key.attempt else ""
    # The conductor's message is how far a search is; during other trials it is empty.
    return f"{trial}: {state.message or f'{key.point}{again}'} ({state.current.label})"


def updated_status(run: Run, facts: Mapping[str, Fact], now: datetime) -> Json:
    conditions = [condition.model_dump(mode="json") for condition in _conditions(run, facts, now)]
    return {**run.status, "observedGeneration": run.generation, "conditions": conditions}


def estimated_end(run: Run, seen: Observed, now: datetime) -> datetime | None:
    """Return when the last trial should be over if no more have to be repeated; None while that is unknown.

    The estimate is made when all clients have registered, with each attempt, and during the prefill when it has become
    wrong. Other delays do not move it, so it reveals a run that is behind schedule.
    """
    plan, state = seen.plan, seen.state
    if plan is None or state is None or run.is_suspended or state.phase is RunPhase.WAITING_FOR_WINDOW:
        return None
    before = time_of(run.status.get("estimatedCompletionTime"))
    if not seen.all_registered or not 0 <= state.trials_done < min(state.trials_total, len(plan.pairs)):
        return before
    pace = _pace(plan, seen)
    match state.phase:
        case RunPhase.MEASURING:
            return _end_from_trial(plan, state, pace) or before or _after(now, _left_seconds(plan, state, pace))
        case RunPhase.SETTLING:
            new = _after(now, plan.prepare.settle_seconds + _left_seconds(plan, state, pace))
            return _unless_close(before, new, now, may_grow=False)
        case RunPhase.PREPARING:
            cost, ready = estimate(plan), run.conditions.get(ConditionType.CLIENTS_READY)
            since = (time_of(ready.last_transition_time) if ready else None) or now
            done, total = state.prefill.done_bytes, state.prefill.total_bytes
            passed = age_seconds(since, now)
            prefill = max(0.0, cost.prefill_seconds - passed)
            if done and passed >= _TOLERATED_SECONDS:
                # At its rate since the clients registered.
                prefill = max(0, total - done) * passed / done
            afterwards = cost.precondition_seconds + cost.settle_seconds + _left_seconds(plan, state, pace)
            new = _after(now, prefill + afterwards)
            # The estimate of the last attempt includes the preparations between trials.
            has_trials = any(result.trials for result in seen.results.values())
            is_known = before is not None and plan.renews_data_sets and has_trials
            is_filled = 0 < total <= done
            return before if is_known else _unless_close(before, new, now, may_grow=not is_filled)
        case _:
            return before


def is_late(end: datetime | None, now: datetime) -> bool:
    return age_seconds(end, now) > _TOLERATED_SECONDS


def _conditions(run: Run, facts: Mapping[str, Fact], now: datetime) -> tuple[Condition, ...]:
    """Return the facts as conditions, and earlier conditions without a new fact."""
    stale = {ConditionType.RECONCILING, ConditionType.STALLED} - facts.keys()
    conditions = tuple(condition for kind, condition in run.conditions.items() if kind not in stale)
    for kind, fact in facts.items():
        condition = Condition(
            type=ConditionType(kind),
            status=_STATUS_OF[fact.holds],
            observed_generation=run.generation,
            reason=fact.reason,
            message=printable_text(fact.message[:_MAX_MESSAGE]),
        )
        conditions = set_condition(conditions, condition, now)
    return conditions


def _summary(situation: Situation) -> dict[str, Fact]:
    """Return Succeeded, and Reconciling or Stalled if they hold: kstatus checks only for their presence."""
    ending = situation.ending
    if ending is None:
        facts: dict[str, Fact] = {"Succeeded": Fact(holds=None, reason=situation.reason, message=situation.message)}
        if situation.stage is not Stage.SUSPENDED:
            facts["Reconciling"] = Fact.true(situation.reason, situation.message)
        return facts
    facts = {"Succeeded": ending}
    if not ending.holds:
        facts["Stalled"] = Fact.true(ending.reason, ending.message)
    elif not is_settled(situation.facts["CleanedUp"]):
        facts["Reconciling"] = Fact.true(Reason.CLEANING_UP, situation.facts["CleanedUp"].message)
    return facts


def _headlines(seen: Observed) -> Iterator[Headline]:
    """Yield the numbers of every point that is not Invalid, in the plan's order."""
    storms = _storm_lines(seen)
    for point in seen.plan.points if seen.plan else ():
        result = seen.results.get(point.name)
        if result is None or result.verdict in {None, Verdict.INVALID}:
            continue
        headline = partial(
            Headline,
            workload=point.workload,
            point=point.name,
            label=point.label[:_MAX_TEXT],
            verdict=result.verdict or Verdict.INVALID,
        )
        if point.line is not None and result.line is not None:
            line = result.line
            shown = HeadlineLine(
                text=headline_text(line, point.line, storms.get(point.name))[:_MAX_TEXT],
                vary=point.line.vary,
                ending=line.ending,
                estimate=line.estimate,
                low=line.low,
                high=line.high,
            )
            yield headline(line=shown)
        for operation in result.operations:
            yield headline(**operation)


def _storm_lines(seen: Observed) -> Mapping[str, Line]:
    storms = dict[str, Line]()
    for point in seen.plan.points if seen.plan else ():
        if point.calm is not None and (result := seen.results.get(point.name)) is not None:
            storms[point.calm] = result.line or Line(probes=0, counted=0)
    return storms


def _environment(seen: Observed) -> Iterator[tuple[str, str]]:
    """Yield the environment recorded in plan and results as names and texts; groups of fields are flattened."""
    fields = seen.plan.environment.document() if seen.plan else {}
    fields.update(next(filter(None, (result.environment.document() for result in seen.results.values())), {}))
    storage_class, ceph = fields.pop("storageClass", None), fields.pop("ceph", None)
    if isinstance(storage_class, Mapping):
        values = {_FIELDS.get(field, field): value for field, value in storage_class.items()}
        fields.update({field: value for field, value in values.items() if value not in ({}, None)})
    if isinstance(ceph, Mapping):
        fields.update({f"ceph{field[:1].upper()}{field[1:]}": value for field, value in ceph.items()})
    for name, value in sorted(fields.items())[:_MAX_ENVIRONMENT]:
        text = _text(value)
        if len(text) > _MAX_VALUE:
            # Truncated after its last whole entry, if there is one.
            whole, comma, _ = text[: _MAX_VALUE - 1].rpartition(", ")
            text = f"{whole}{comma}…" if comma else f"{text[: _MAX_VALUE - 1]}…"
        yield name, text


def _text(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _display(seen: Observed, situation: Situation, headline: Sequence[Headline]) -> Display:
    points = seen.plan.points if seen.plan else ()
    done, total = (seen.state.trials_done, seen.state.trials_total) if seen.state else (0, 0)
    if seen.plan is not None and (measured := situation.facts.get("Measured")) and measured.holds:
        # A run ends with its last result, which its conductor writes before its state.
        done = total = len(seen.plan.pairs)
    rated = [entry for entry in headline if entry.iops is not None]
    # Not every tool counts operations.
    uncounted = {point.name for point in points if not TOOLS[point.tool].quantities.operations}
    rates = [entry.iops for entry in rated if entry.iops is not None and entry.point not in uncounted]
    best = max(rated, key=lambda entry: entry.iops or 0, default=None)
    latency = best.latency_nanoseconds if best else None
    storms, lines, told = _storm_lines(seen), list[str](), set[str | None]()
    for point in points:
        result = seen.results.get(point.name)
        if point.line and result and result.line and result.verdict is not Verdict.INVALID and point.calm not in told:
            lines.append(short_text(result.line, point.line, storms.get(point.name)))
            told.add(point.name)
    more = f" +{len(lines) - 1}" if len(lines) > 1 else ""
    final = {result.verdict for result in seen.results.values() if result.final} if situation.ending else set()
    worst = next((verdict for verdict in (Verdict.INVALID, Verdict.SUSPECT, Verdict.VALID) if verdict in final), "")
    return Display(
        workloads=",".join(dict.fromkeys(point.workload for point in points))[:_MAX_TEXT],
        progress=f"{done}/{total}" if seen.plan else "",
        status=situation.stage.value if situation.ending is None else situation.reason,
        iops=f"{max(rates):,}" if rates else "",
        p99=format_duration(latency.p99) if latency and latency.p99 else "",
        line=f"{lines[0][: _MAX_SHORT - len(more)]}{more}" if lines else "",
        message=situation.message[:_MAX_DISPLAY],
        verdict=worst,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pace:
    """How long trials really take, in seconds."""

    took: Mapping[str, Sequence[float]]  # point -> the durations of its measured trials
    servers: int  # number of the run's servers
    preparing: float  # planned between two trials: zero unless each trial has a new data set
    between: float  # from the end of a trial to the start of the next
    ratio: float  # of the real to the planned duration of trials, both with what is between them

    def seconds(self, point: Point) -> float:
        if self.took[point.name]:
            return fmean(self.took[point.name]) + self.between
        return (trial_seconds(point, self.servers) + self.preparing) * self.ratio


def _pace(plan: Plan, seen: Observed) -> _Pace:
    took = {
        point.name: [
            max(0.0, (trial.finished - trial.started).total_seconds())
            for trial in (seen.results[point.name].trials if point.name in seen.results else ())
            if trial.outcome is Outcome.MEASURED
        ]
        for point in plan.points
    }
    trials = (trial for result in seen.results.values() for trial in result.trials)
    in_order = pairwise(sorted(trials, key=lambda trial: trial.started))
    gaps = [
        max(0.0, (after.started - before.finished).total_seconds())
        for before, after in in_order
        if before.epoch == after.epoch
    ]
    preparing = renewal_seconds(plan)
    between = median(gaps) if gaps else preparing
    servers = plan.server_count
    planned = sum(len(took[point.name]) * (trial_seconds(point, servers) + preparing) for point in plan.points)
    taken = sum(seconds + between for all_taken in took.values() for seconds in all_taken)
    ratio = taken / planned if planned else 1.0
    return _Pace(took=took, servers=servers, preparing=preparing, between=between, ratio=ratio)


def _end_from_trial(plan: Plan, state: RunState, pace: _Pace) -> datetime | None:
    """Return when the last trial should be over, counted from the start of the one in flight; None without one."""
    trial = state.in_flight
    number, point = plan.pairs[state.trials_done]
    if trial is None or trial.point != point.name or (point.line is None and trial.pass_number != number):
        return None
    current = datetime.fromtimestamp(state.current.starts_at, tz=UTC) if state.current else None
    started = time_of(state.in_flight_since) or current
    return _after(started, _left_seconds(plan, state, pace)) if started else None


def _left_seconds(plan: Plan, state: RunState, pace: _Pace) -> float:
    """Return the seconds from the start of the next trial to the end of the last; searches take their maximum."""
    seconds = 0.0
    for _, point in plan.pairs[state.trials_done :]:
        is_search = point.line is not None
        trials = max(1, most_trials(plan, point) - len(pace.took[point.name])) if is_search else 1
        seconds += pace.seconds(point) * trials
    # Nothing is prepared after the last trial.
    return max(0.0, seconds - pace.between) if pace.preparing else seconds


def _unless_close(before: datetime | None, new: datetime, now: datetime, *, may_grow: bool) -> datetime:
    """Return the earlier estimate if the new one is close to it, or later without `may_grow`."""
    if before is None:
        return new
    tolerated = max(_TOLERATED_SECONDS, _TOLERATED_SHARE * age_seconds(now, new))
    difference = (new - before).total_seconds()
    return before if abs(difference) <= tolerated or (difference > 0 and not may_grow) else new


def _after(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=ceil(min(seconds, _MAX_LEFT_SECONDS)))
