"""What a run's status says: conditions, progress, headline. Derived anew at every look."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from plimsoll.api.duration import format_duration
from plimsoll.api.names import Verdict
from plimsoll.api.result import OperationSummary
from plimsoll.lifecycle.actions import Event
from plimsoll.lifecycle.decision import Fact, Situation, Stage
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan
from plimsoll.plan.estimate import estimate

MAX_HEADLINES = 32
_MAX_MESSAGE = 2000
_MAX_DISPLAY = 1024
_MAX_ENVIRONMENT = 64

Json = dict[str, Any]


def status_of(run: Run, seen: Observed, situation: Situation, now: datetime) -> Json:
    """Return the whole status. A field that is None is to be removed."""
    headline = list(_headlines(seen)) if seen.plan else []
    if seen.plan is None and run.status.get("completionTime"):
        # The numbers of a run that has ended do not go because somebody took away what they were read from.
        return {**run.status, "observedGeneration": run.generation, "conditions": _conditions(run, situation, now)}
    admitted = situation.facts.get("Admitted")
    started = run.status.get("startTime") or (_time(now) if admitted and admitted.holds else None)
    ended = run.status.get("completionTime") or (_time(now) if situation.ending else None)
    return {
        "observedGeneration": run.generation,
        "conditions": _conditions(run, situation, now),
        "startTime": started,
        "completionTime": ended,
        "estimatedCompletionTime": None if ended else _estimated_end(run, seen, now),
        "points": _points(seen),
        "headline": headline[:MAX_HEADLINES],
        "environment": _environment(seen),
        "display": _display(seen, situation, headline),
    }


def events_of(run: Run, said: Mapping[str, Any]) -> tuple[Event, ...]:
    """Return an event for every condition that changes with this status; nothing for what is merely repeated."""
    events = []
    for condition in said["conditions"]:
        before = run.conditions.get(condition["type"])
        if before is not None and (before["status"], before["reason"]) == (condition["status"], condition["reason"]):
            continue
        if condition["type"] == "Reconciling" or condition["status"] == "Unknown":
            continue
        bad = condition["type"] == "Stalled" or (condition["type"] == "Succeeded" and condition["status"] == "False")
        reason = f"{condition['type']}{condition['reason'] if condition['status'] == 'True' else 'False'}"
        message = condition["message"] or condition["reason"]
        events.append(Event(kind="Warning" if bad else "Normal", reason=reason, message=message))
    return tuple(events)


def progress_message(seen: Observed) -> str:
    """Return what is being measured, in one line; empty between trials."""
    state = seen.state
    if state is None or state.current is None:
        return ""
    return f"trial {state.trials_done + 1} of {state.trials_total}: {state.current.key} ({state.current.label})"


def _conditions(run: Run, situation: Situation, now: datetime) -> list[Json]:
    """Return the conditions by type; those that were said before and do not change keep their time."""
    facts: dict[str, Fact] = {}
    for kind in ("Admitted", "StorageReady", "ClientsReady", "Measured", "CleanedUp", "Suspended"):
        before = run.conditions.get(kind)
        if kind in situation.facts:
            facts[kind] = situation.facts[kind]
        elif before is not None:
            facts[kind] = _fact_of(before)
    facts |= _summary(situation)
    return [_condition(run, kind, fact, now) for kind, fact in sorted(facts.items())]


def _summary(situation: Situation) -> dict[str, Fact]:
    """Return Succeeded, and Reconciling or Stalled where they hold: kstatus reads their presence."""
    ending = situation.ending
    if ending is None:
        found = {"Succeeded": Fact(holds=None, reason=situation.reason, message=situation.message)}
        if situation.stage is not Stage.SUSPENDED:
            found["Reconciling"] = Fact(holds=True, reason=situation.reason, message=situation.message)
        return found
    found = {"Succeeded": Fact(holds=ending.succeeded, reason=ending.reason, message=ending.message)}
    if not ending.succeeded:
        found["Stalled"] = Fact(holds=True, reason=ending.reason, message=ending.message)
    elif situation.stage is not Stage.FINISHED:
        found["Reconciling"] = Fact(holds=True, reason="CleaningUp", message=situation.facts["CleanedUp"].message)
    return found


def _condition(run: Run, kind: str, fact: Fact, now: datetime) -> Json:
    said = {True: "True", False: "False", None: "Unknown"}[fact.holds]
    before = run.conditions.get(kind)
    unchanged = before is not None and before["status"] == said
    return {
        "type": kind,
        "status": said,
        "reason": fact.reason,
        "message": fact.message[:_MAX_MESSAGE],
        "observedGeneration": run.generation,
        "lastTransitionTime": before["lastTransitionTime"] if before is not None and unchanged else _time(now),
    }


def _fact_of(condition: Mapping[str, Any]) -> Fact:
    holds = {"True": True, "False": False}.get(condition["status"])
    return Fact(holds=holds, reason=condition["reason"], message=condition.get("message", ""))


def _points(seen: Observed) -> Json:
    total = len(seen.plan.points) if seen.plan else 0
    final = [result for result in seen.results.values() if result.final]
    invalid = sum(result.verdict is Verdict.INVALID for result in final)
    return {"total": total, "completed": len(final), "invalid": invalid}


def _headlines(seen: Observed) -> Iterator[Json]:
    """Yield the numbers of every point that may be believed, in the plan's order."""
    for point in seen.plan.points if seen.plan else ():
        result = seen.results.get(point.name)
        if result is None or result.summary is None or result.verdict in {None, Verdict.INVALID}:
            continue
        for operation in result.summary.operations:
            yield {
                "workload": point.workload,
                "point": point.name,
                "label": point.label,
                "operation": operation.operation.value,
                "iops": round(operation.iops.mean),
                "bytesPerSecond": round(operation.bytes_per_second.mean),
                **_latency(operation),
                "verdict": result.verdict.value if result.verdict else Verdict.INVALID.value,
            }


def _latency(operation: OperationSummary) -> Json:
    known = {f"p{p}": round(operation.percentiles[p].mean) for p in ("50", "99") if p in operation.percentiles}
    return {"latencyNanoseconds": known} if known else {}


def _environment(seen: Observed) -> Json:
    """Return what the results say of where they were measured, as text."""
    for result in seen.results.values():
        if result.environment:
            return {key: _text(value) for key, value in sorted(result.environment.items())[:_MAX_ENVIRONMENT]}
    return {}


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {part}" for key, part in value.items())[:256]
    if isinstance(value, list):
        return ", ".join(map(str, value))[:256]
    return str(value)[:256]


def _display(seen: Observed, situation: Situation, headline: list[Json]) -> Json:
    """Return the printer columns."""
    workloads = ",".join(dict.fromkeys(point.workload for point in seen.plan.points)) if seen.plan else ""
    verdicts = [entry["verdict"] for entry in headline]
    return {
        "workloads": workloads[:128],
        "progress": _progress(seen) if seen.plan else _planned(seen.plan),
        "status": situation.stage.value if situation.ending is None else situation.reason,
        "iops": f"{max(entry['iops'] for entry in headline):,}" if headline else "",
        "p99": _p99_of_best(headline),
        "message": situation.message[:_MAX_DISPLAY],
        "verdict": _verdict(situation, verdicts),
    }


def _estimated_end(run: Run, seen: Observed, now: datetime) -> str | None:
    """Return when the last trial should be over; said anew when a trial is done, or every look would be a write."""
    if seen.plan is None or seen.state is None or not seen.state.trials_total:
        return None
    before = run.status.get("estimatedCompletionTime")
    if before and run.status.get("display", {}).get("progress") == _progress(seen):
        return str(before)
    left = 1 - seen.state.trials_done / seen.state.trials_total
    return _time(now + timedelta(seconds=estimate(seen.plan).measuring_seconds * left))


def _progress(seen: Observed) -> str:
    return f"{seen.state.trials_done}/{seen.state.trials_total}" if seen.state else "0/0"


def _planned(plan: Plan | None) -> str:
    return f"0/{len(plan.points) * plan.repetitions}" if plan else ""


def _p99_of_best(headline: list[Json]) -> str:
    """Return the 99th percentile that goes with the best rate."""
    best = max(headline, key=lambda entry: int(entry["iops"]), default={})
    nanoseconds = best.get("latencyNanoseconds", {}).get("p99")
    return format_duration(nanoseconds) if nanoseconds else ""


def _verdict(situation: Situation, verdicts: list[str]) -> str:
    if situation.ending is None:
        return ""
    if situation.ending.reason == "InvalidResults":
        return Verdict.INVALID.value
    return Verdict.SUSPECT.value if Verdict.SUSPECT.value in verdicts else (verdicts[0] if verdicts else "")


def _time(now: datetime) -> str:
    return now.replace(microsecond=0).isoformat().replace("+00:00", "Z")
