"""The line of a point over the trials of its search, and their verdict."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from plimsoll.api.line import Ending, Line, LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding, Trial
from plimsoll.measure.attempts import judge_replaced, last_attempts, why_not_counted
from plimsoll.measure.checks.check import CheckedValue, evaluate, rolled_up, verdict_of
from plimsoll.measure.checks.judge import NO_TRIAL_COUNTS, PASSES_MISSING, in_order
from plimsoll.measure.checks.repetitions import judge_clients
from plimsoll.measure.line.curve import LINE_DRIFTING, NOT_MONOTONE
from plimsoll.measure.line.observe import BROKEN
from plimsoll.measure.line.search import Progress, arrived_load, counting_trials, tried_loads
from plimsoll.measure.summary import PointNumbers, judge_versions
from plimsoll.measure.text import count_text, first_few, number_text, percent_text

_WHY = {
    ProbeOutcome.UNKNOWN: "too few operations for the percentile (raise runtimeSeconds)",
    ProbeOutcome.NOT_OFFERED: (
        "clients offered less than half of the load (give each at least two CPUs, use more clients, or lower the loads)"
    ),
    ProbeOutcome.NOT_RECOVERED: "not all placement groups were clean at the end (raise runtimeSeconds)",
}
"""Why a probe with trustworthy numbers does not count."""


def uncounted_text(trials: Iterable[Trial]) -> str:
    """Return why last attempts do not count: `RuntimeTooShort in 5 probes, Stalled in 2`; empty if all count."""
    counts = Counter(reason for trial in last_attempts(trials).values() for reason in why_probe_not_counted(trial))
    numbered = enumerate(counts.most_common())
    return first_few(
        [f"{why} in {count if number else count_text(count, 'probe')}" for number, (why, count) in numbered], 3
    )


def why_probe_not_counted(trial: Trial) -> tuple[str, ...]:
    """Return the reasons why a probe does not count; empty if it counts."""
    of_probe = (_WHY[trial.probe.outcome],) if trial.probe and trial.probe.outcome in _WHY else ()
    return why_not_counted(trial) or of_probe


_DOUBTS = {
    Ending.NOT_MONOTONE: (NOT_MONOTONE, "a range of loads differs from those around it"),
    Ending.DRIFTING: (LINE_DRIFTING, "the line moved during the search"),
}

_NEAR = 1.5  # loads within this factor of the line, or within its interval, are next to it


def summarise_search(trials: Sequence[Trial], progress: Progress) -> PointNumbers:
    """Summarise the trials of a search that has come this far."""
    line, good, last = progress.line, counting_trials(trials), [*last_attempts(trials).values()]
    doubts: tuple[Finding, ...] = ()
    if line.ending in _DOUBTS:
        check, what = _DOUBTS[line.ending]
        detail = f"{what}: the outcomes are {number_text(progress.evidence)} times likelier so"
        doubts = evaluate(check, [CheckedValue(value=progress.evidence, detail=detail)])
    uncounted, why = len(last) - len(good), uncounted_text(trials)
    causes = f": {why}" if why else ""
    if good:
        # A load with too few operations is not repeated but exceeded, which does no harm unless the search gives up.
        gave_up = line.ending is Ending.PROBES_DO_NOT_COUNT
        missing = uncounted if gave_up else sum(probe.verdict is Verdict.INVALID for probe in last)
        detail = f"{uncounted} of {len(last)} probes do not count{causes}"
        replication = evaluate(PASSES_MISSING, [CheckedValue(value=missing, detail=detail)])
    else:
        detail = f"no probe counts, of {len(last)}{causes}"
        replication = evaluate(NO_TRIAL_COUNTS, [CheckedValue(value=0, detail=detail)])
    shown = [trial for trial in good if _matters(trial, line)] if good else last
    findings = in_order(
        [
            *rolled_up(((trial.pass_number, trial.findings) for trial in shown), "probe"),
            *doubts,
            *judge_versions(good),
            *judge_clients(trials, good, "probe"),
            *judge_replaced(trials if good else (), "probe"),
            *replication,
        ]
    )
    return PointNumbers(summary=None, verdict=verdict_of(findings), findings=findings)


def _matters(trial: Trial, line: Line) -> bool:
    """Whether the findings of a probe that counts cast doubt on the line.

    A load far beyond the line, which breaks, overloads the storage and the clients on purpose; a load far below it,
    which does not break, cannot move it.
    """
    loads = [load for load in (line.low, line.estimate, line.high) if load]
    if trial.probe is None or not loads:
        return True
    load, broke = arrived_load(trial, trial.probe), trial.probe.outcome in BROKEN
    is_far_below = load < min(*loads, (line.estimate or loads[0]) / _NEAR)
    is_far_above = load > max(*loads, (line.estimate or loads[-1]) * _NEAR)
    return not (is_far_above if broke else is_far_below)


def unproven_side(line: Line, trials: Iterable[Trial]) -> str:
    """Return what no trial that counts shows of a line, in words; empty if both sides of an estimate are shown.

    A bound needs a trial that ended on its side. A result of several runs has no loads: each run was checked by itself.
    The calm line with its ends is shown by its own trials.
    """
    if not (probes := tried_loads(trials)) or line.ending is Ending.EQUALS_CALM:
        return ""
    estimate, counting = line.estimate, [probe for probe in probes if probe.counts]
    met = any(not probe.is_broken and (not estimate or probe.load <= estimate) for probe in counting)
    broken = any(probe.is_broken and (not estimate or probe.load >= estimate) for probe in counting)
    where = " at or {} it" if estimate else ""
    if not met and (estimate or line.low):
        return f"no load{where.format('below')} met the objectives"
    if not broken and (estimate or line.high):
        return f"no load{where.format('above')} broke"
    return ""


UNKNOWN = "-"

_SENTENCE = {
    Ending.EQUALS_CALM: (
        "The disturbance costs nothing that can be measured: during it, the storage carries a load within the interval "
        "of the calm line, with 97.5 % confidence, and no higher load was offered."
    ),
    Ending.BROKEN_AT_FIRST: (
        "The line is below the lowest load that may be offered, with 97.5 % confidence; decrease start, or allow a "
        "higher latency."
    ),
    Ending.NOT_MONOTONE: (
        "The storage breaks in a range of loads and holds at higher ones, beyond chance: it has no single line, and "
        "the interval means little."
    ),
    Ending.DRIFTING: (
        "The storage became slower or faster during the search, beyond chance: the line moved, and the interval is "
        "around no single value."
    ),
}
"""Of the endings whose sentence does not depend on the numbers."""

_FULL_DIGITS = 3  # significant digits of a load that has no interval
_MOST_DECIMALS = 6
_MOST_ZEROS = 15  # a float has no more digits to round


def headline_text(line: Line, search: LineSearch, storm: Line | None = None) -> str:
    """Return the result: `carries 12,400 ± 600 IOPS at p99 <= 5 ms`, and `, 7,000 ± 300 while 1 OSD is out`."""
    condition = f"at {objectives_text(search.objectives)}{f' {_while_text(line)}' if line.storm else ''}"
    text = _result_text(line, search, condition)
    if storm is None:
        return text
    if not (is_known(line) and is_known(storm)):
        return f"{text}; {_result_text(storm, search, _while_text(storm))}"
    equal = storm.ending is Ending.EQUALS_CALM
    return f"{text}, {'and as much' if equal else load_text(storm, search)} {_while_text(storm)}"


def _result_text(line: Line, search: LineSearch, condition: str) -> str:
    if is_known(line):
        return f"carries {load_with_unit(line, search)} {condition}"
    unknown = "not known yet" if line.ending is None else f"unknown after {probes_made(line)}"
    return f"line {condition} is {unknown}"


def _while_text(storm: Line) -> str:
    if storm.storm is None:
        return "while OSDs are away"
    away = "1 OSD is" if storm.storm.count == 1 else f"{storm.storm.count} OSDs are"
    return f"while {away} {storm.storm.action.lower()}"


def short_text(line: Line, search: LineSearch, storm: Line | None = None) -> str:
    """Return the same for a column of a table: `12,400 ± 600 at p99 <= 5 ms, 7,000 ± 300 with 1 OSD out`."""
    away = f", {line.storm.text}" if line.storm else ""
    # A load without a unit is a rate, which the column's other numbers are, too.
    load = load_with_unit if search.vary is Vary.DEPTH else load_text
    text = f"{load(line, search)} at {objectives_text(search.objectives)}{away}"
    if storm is None or (storm.ending is None and not is_known(storm)):
        return text
    return f"{text}, {load(storm, search)} with {storm.storm.text if storm.storm else 'OSDs away'}"


def unit_text(search: LineSearch) -> str:
    return {Vary.RATE: "IOPS", Vary.DEPTH: "in flight"}[search.vary]


def objectives_text(objectives: Iterable[Objective]) -> str:
    """Return the objectives: `p50 <= 800 µs and p99 <= 5 ms`."""
    return " and ".join(map(objective_text, objectives))


def objective_text(objective: Objective) -> str:
    """Return one objective with its exact latency: `p99 <= 1.25 ms`."""
    number = objective.latency.rstrip("mus")
    unit = objective.latency.removeprefix(number).replace("u", "µ")
    return f"p{objective.percentile} <= {number} {unit}"


def is_known(line: Line) -> bool:
    """Whether anything is known about the line's position."""
    return (line.estimate, line.low, line.high) != (None, None, None)


def load_text(line: Line, search: LineSearch) -> str:
    """Return the line with half the width of its interval, or its bound: `12,400 ± 600`, `more than 200,000`."""
    low, high, estimate = line.low, line.high, line.estimate
    if estimate is not None and low is not None and high is not None and low <= estimate <= high:
        half = (high - low) / 2
        return f"{_at_precision(estimate, half)} ± {_at_precision(half, half)}"
    if estimate is not None:
        return f"about {rounded_load(estimate)}"
    if low is not None and high is not None:
        return f"between {rounded_load(low)} and {rounded_load(high)}"
    if low is not None:
        return f"more than {rounded_load(min(low, search.highest_load))}"
    if high is not None:
        return f"less than {rounded_load(high)}"
    return "unknown" if line.ending else "not known yet"


def load_with_unit(line: Line, search: LineSearch) -> str:
    """Return the line or its bound with its unit: `12,400 ± 600 IOPS`; `unknown` without one."""
    text = load_text(line, search)
    return f"{text} {unit_text(search)}" if is_known(line) else text


def interval_text(line: Line, search: LineSearch) -> str:
    """Return the 95 % interval: `11,800 to 13,000`, or its known end: `above 11,800`; a dash if both are unknown."""
    low, high = line.low, line.high
    if low is not None and high is not None:
        return f"{_at_precision(low, high - low)} to {_at_precision(high, high - low)}"
    if low is not None:
        return f"above {rounded_load(min(low, search.highest_load))}"
    return UNKNOWN if high is None else f"below {rounded_load(high)}"


def width_text(line: Line) -> str:
    """Return the width of the interval in percent of the estimate: `9.1 %`; a dash if it is unknown."""
    return UNKNOWN if line.width_percent is None else percent_text(round(line.width_percent, _FULL_DIGITS))


def line_probes_text(line: Line) -> str:
    """Return the number of probes that count, of those made: `17`, `16 of 17`."""
    return str(line.probes) if line.counted == line.probes else f"{line.counted} of {line.probes}"


def current_text(number: int, most: int) -> str:
    """Return which probe is under way, by its number from 0: `probe 12 of at most 40`."""
    return f"probe {number + 1} of at most {most}"


def progress_text(line: Line) -> str:
    """Return how far a search is: `3 of at most 40`; after its end the probes as in `line_probes_text`."""
    return f"{line.probes} of at most {line.most_probes}" if line.ending is None else line_probes_text(line)


def ending_text(line: Line) -> str:
    """Return the name of the ending; `searching` while the search goes on."""
    return "searching" if line.ending is None else line.ending.value


def outcome_text(outcome: ProbeOutcome) -> str:
    return outcome.name.replace("_", " ").lower()


def ending_sentence(line: Line, search: LineSearch, uncounted: str = "") -> str:
    """Return why the search ended and what that means, in one sentence; `uncounted` is from `uncounted_text`."""
    made, reasons = probes_made(line), f" ({uncounted})" if uncounted else ""
    interval = f"the interval is {interval_text(line, search).replace(UNKNOWN, 'unknown')}"
    if line.width_percent is not None:
        precision = f"at most {search.precision_percent} % were requested"
        interval = f"the interval is {width_text(line)} of the estimate wide; {precision}"
    match line.ending:
        case None:
            # The line does not say whether it continues, or the run ended before.
            return f"The search is not finished: {progress_text(line)} probes made; {interval}."
        case Ending.PRECISE:
            return f"The search ended after {made}: {interval}."
        case Ending.PROBES_USED_UP:
            why = "" if line.width_percent is None else "; the storage scatters too much from trial to trial"
            if 2 * line.counted < line.probes:
                why = f"; most probes do not count{reasons}; remove the cause, then run again"
            return f"The search ended after {made}, the most that it may make: {interval}{why}."
        case Ending.PROBES_DO_NOT_COUNT:
            why = f"more probes would not count either{reasons}; remove the cause, then run again"
            return f"The search gave up{f' after {made}' if line.counted else ''}: {why}."
        case Ending.NEVER_BROKE:
            load = min(search.highest_load, line.low or math.inf)
            # Slow clients offer less than the highest load, and a storm line has a lower one.
            is_highest = load == search.highest_load
            remedy = "; to find it, increase limit, and the number of clients if it is refused"
            if not is_highest:
                remedy = "" if line.storm else "; if the clients offered too little, use more, or give them more CPU"
            what = "was offered" if is_highest else "arrived"
            highest = f"{rounded_load(load)} {unit_text(search)}, the highest load that {what}"
            return f"The line is above {highest}, with 97.5 % confidence{remedy}."
        case _:
            return _SENTENCE[line.ending]


def probes_made(line: Line) -> str:
    """Return the number of probes, and how many count if not all do: `17 probes, 16 of which count`."""
    made = count_text(line.probes, "probe")
    count = f"{line.counted or 'none'} of which count{'s' * (line.counted < 2)}"  # noqa: PLR2004 - a plural
    return made if line.counted == line.probes else f"{made}, {count}"


def rounded_load(load: float) -> str:
    """Return a load with at least three significant digits, as far as six decimals show them: `12,412`, `8.25`."""
    if load == round(load) or load >= 10**_FULL_DIGITS:
        return f"{load:,.0f}"
    decimals = min(max(_FULL_DIGITS - 1 - math.floor(math.log10(load)), 0), _MOST_DECIMALS)
    text = f"{load:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def _at_precision(value: float, uncertainty: float) -> str:
    """Return a value with the digits that its uncertainty leaves: one digit of it, or two from 1 and 2 on."""
    if not 0 < uncertainty < math.inf:
        return rounded_load(value)
    leading, exponent = f"{uncertainty:e}".split("e")
    wanted = (1 if float(leading) < 3 else 0) - int(exponent)  # noqa: PLR2004 - as the docstring says
    decimals = min(max(wanted, -_MOST_ZEROS), _MOST_DECIMALS)
    return f"{round(value, decimals):,.{max(0, decimals)}f}"
