"""The administrator's limits on a run: its size, its writes, and when it may load."""

from datetime import datetime

from plimsoll.api.quantity import format_quantity
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import RunSpec
from plimsoll.api.status import format_time
from plimsoll.lifecycle.decision import RunEnding
from plimsoll.lifecycle.run import Limits, Settings
from plimsoll.measure.text import count_text, size_text
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import estimate, estimate_writes
from plimsoll.plan.windows import longest_load_seconds, next_start

_ASK = "or ask the operator's administrator to"


def spec_excess(spec: RunSpec, limits: Limits) -> RunEnding | None:
    problems = []
    count, most = spec.clients.count, limits.max_clients
    if most is not None and count > most:
        problems.append(
            f"spec.clients.count is {count}, but a run may have {count_text(most, 'client')}; lower it, {_ASK} raise "
            "the chart's limits.maxClients"
        )
    volume, largest = spec.storage.volume if spec.storage else None, limits.max_volume_size
    if volume is not None and largest is not None and volume.size > largest:
        problems.append(
            f"spec.storage.volume.size is {format_quantity(volume.size)}, but may be at most "
            f"{format_quantity(largest)}; lower it, {_ASK} raise the chart's limits.maxVolumeSize"
        )
    return RunEnding.failure(Reason.LIMIT_EXCEEDED, "; ".join(problems)) if problems else None


def plan_excess(plan: Plan, settings: Settings, now: datetime) -> RunEnding | None:
    """Return why a plan writes too much, or has a trial that is longer than the windows; None if neither is so."""
    most, writes = settings.limits.max_written_bytes, estimate_writes(plan)
    if most is not None and writes.preparing + writes.loading > most:
        message = (
            f"the run writes {writes.text}, but a run may write {format_quantity(most)}; lower clients.count, "
            " volume.size, runtimeSeconds, repetitions or a rate of its workloads, or set "
            f"prepare.prefill to false, {_ASK} raise the chart's limits.maxWrittenBytes"
        )
        return RunEnding.failure(Reason.LIMIT_EXCEEDED, message)
    seconds = longest_load_seconds(plan)
    if next_start(settings.windows, now, seconds) is None:
        message = (
            f"the longest trial and the preparation before it take {seconds} s, and no maintenance window is that "
            "long; lower runtimeSeconds, volume.size or prepare.settleSeconds, "
            f"{_ASK} set longer ones in the chart's maintenanceWindows"
        )
        return RunEnding.failure(Reason.WINDOWS_TOO_SHORT, message)
    return None


def closed_until(plan: Plan, settings: Settings, now: datetime) -> str:
    """Return that a run waits for a window that holds its longest trial, and until when; empty if it may start."""
    start = next_start(settings.windows, now, longest_load_seconds(plan))
    if start is None or start <= now:
        return ""
    return (
        f"waiting until {format_time(start)} for the next maintenance window that is long enough "
        "(the chart's maintenanceWindows)"
    )


def writes_text(plan: Plan) -> str:
    """Return what a run writes and stores: `writes 60 GiB to prefill ...; stores at most ...`."""
    written, cost = f"writes {estimate_writes(plan).text or 'no data'}", estimate(plan)
    if not cost.data_bytes:
        return written
    copies = f", {size_text(cost.stored_bytes)} with replicas or coding chunks" if cost.stored_bytes else ""
    return f"{written}; its data sets fill at most {size_text(cost.data_bytes)}{copies}"
