"""One look at a suite: from observation to decision. Level-triggered: the status is its only memory."""

from collections.abc import Iterator, Mapping

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.reasons.suites import SUITE_TABLE, SuiteReason
from plimsoll.suite.rounds.actions import LONGEST_WAIT_SECONDS, Action, CreateRun, Decision, Emit, PatchStatus
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.progress import Progress, progress_of
from plimsoll.suite.rounds.requests import pause_seconds, request_of
from plimsoll.suite.rounds.status import Fact, facts_of, is_written, status_of


def step(seen: Observed) -> Decision:
    """Return what to do for a suite now.

    The status is written before the request that it is about, so that a round exists before its first run. Before a run
    is created it is written in any case: that fails if the suite was read before another operator wrote its status.
    Nothing is left to do for a deleted suite: its runs are garbage-collected.
    """
    if seen.suite.is_deleted:
        return Decision()
    progress = progress_of(seen)
    request = request_of(seen, progress)
    facts = facts_of(seen, progress, request)
    pause = pause_seconds(seen, request) if request is not None else 0
    requests = () if request is None or pause else (request,)
    actions = [*_writes(seen, progress, facts, is_fence=any(isinstance(one, CreateRun) for one in requests)), *requests]
    return Decision(actions=tuple(actions), again_after=_again_after(seen, progress, pause))


def _writes(
    seen: Observed, progress: Progress, facts: Mapping[SuiteConditionType, Fact], *, is_fence: bool
) -> Iterator[Action]:
    """Yield the status if it has changed or has to be written in any case, and the events about a change."""
    status = status_of(seen, progress.state, facts)
    is_known = is_written(status, seen.suite.status)
    if is_fence or not is_known:
        yield PatchStatus(status=status, resource_version=seen.suite.resource_version)
    if is_known:
        return
    yield from progress.events
    stalled = facts.get(SuiteConditionType.STALLED)
    before = seen.suite.conditions.get(SuiteConditionType.STALLED)
    # A regression has the event of its round.
    if stalled is None or stalled.reason is SuiteReason.REGRESSED or (before and before.reason == stalled.reason):
        return
    yield Emit(severity=SUITE_TABLE[stalled.reason].severity, reason=stalled.reason, message=stalled.message)


def _again_after(seen: Observed, progress: Progress, pause: float) -> float:
    """Return the seconds until the next schedule time, or until a refused request is repeated, but not too many."""
    suite, time = seen.suite.specification.suite, progress.state.next_time
    seconds = [LONGEST_WAIT_SECONDS, *([pause] if pause else [])]
    if suite is not None and not suite.spec.suspend and time is not None and time > seen.now:
        seconds.append((time - seen.now).total_seconds())
    return min(seconds)
