"""Every check that a number has to pass, with its limits and what to do when it does not hold.

This table, with its parts in `cluster_checks`, `host_checks` and `terms_checks`, is the only place with limits, but for
those of SNIA's criterion, which are part of a formula (`steady`); the documentation of the checks is generated from it.
What the values are is the business of `judge`, `terms`, `evenness`, `load`, `hosts`, `cluster`, `osds` and `summary`.
"""

from collections.abc import Sequence

from plimsoll.measure.checking.check import Check, Direction
from plimsoll.measure.checking.cluster_checks import CLUSTER_CHECKS
from plimsoll.measure.checking.host_checks import HOST_CHECKS
from plimsoll.measure.checking.terms_checks import TERMS_CHECKS

TOOL_FAILED = Check(
    reason="ToolFailed",
    what="errors of the tool",
    invalid=0,
    remedy="read the tool's message; it did not do what it was asked to",
)
OUTPUT_UNREADABLE = Check(
    reason="OutputUnreadable",
    what="documents of the tool that cannot be read",
    invalid=0,
    remedy="check the tool's version and its raw output; report it as a bug if the version is a supported one",
)
CLIENT_MISSING = Check(
    reason="ClientMissing",
    what="planned clients without an answer",
    invalid=0,
    remedy="look at the client's pod and node; what the others did is not what was asked for",
)
LATE_CLIENT = Check(
    reason="LateClient",
    what="start after the planned time, without the longest operation",
    unit="s",
    suspect=1,
    invalid=5,
    remedy="lengthen the ramp and look for load on the client's node",
)
EARLY_CLIENT = Check(
    reason="EarlyClient",
    what="start before the planned time",
    unit="s",
    suspect=1,
    invalid=5,
    remedy="find out why the tool cut its ramp, or what set the client's clock; it measured what was to warm up",
)
SHORT_RUN = Check(
    reason="ShortRun",
    what="difference between actual and requested runtime, without the longest operation",
    unit="%",
    suspect=1,
    invalid=10,
    remedy="find out why the tool ended early or overran: an error, a signal, a stall at the end",
)
MISSING_SECONDS = 0.25
"""Of a short runtime a few hundredths are what starting a process takes: no more than this is no reason for Suspect."""

LOW_OVERLAP = Check(
    reason="LowOverlap",
    what=f"part of the mean runtime in which all clients measured; Suspect if over {MISSING_SECONDS} s are missing",
    suspect=0.98,
    invalid=0.90,
    direction=Direction.BELOW,
    remedy=(
        "lengthen the ramp and the runtime, or find what delays the clients; rates are those of the common window, "
        "but latencies those of each client's whole run"
    ),
)
WIDE_SPREAD = Check(
    reason="WideSpread",
    what="time between the first and the last client's start",
    unit="s",
    suspect=1,
    remedy="lengthen the ramp and look for load on the late clients' nodes",
)
TOOL_TOO_OLD = Check(
    reason="ToolTooOld",
    what="starts that were estimated because the tool does not tell its own",
    suspect=0,
    remedy="use a newer version of the tool (fio 3.36 or later)",
)
NOT_PREFILLED = Check(
    reason="NotPrefilled",
    what="clients that read or overwrote a data set which was not written before, or was trimmed since",
    suspect=0,
    remedy=(
        "set prepare.prefill: true, and trim in a run of its own; extents that hold nothing are read without touching "
        "the storage, and have to be allocated when they are written"
    ),
)
SHORT_IO = Check(
    reason="ShortIo",
    what="operations that transferred less than asked",
    suspect=0,
    remedy="check that the data set is fully written and not smaller than the tool was told",
)
DROPPED_IO = Check(
    reason="DroppedIo",
    what="operations that the tool gave up",
    invalid=0,
    remedy="look for errors of the storage in the client's kernel log",
)
LOST_IO = Check(
    reason="LostIo",
    what="operations that never completed and were not in flight at the end, as a part of all",
    unit="%",
    suspect=0,
    invalid=0.01,
    remedy="look for errors of the storage in the client's kernel log; no latency holds what these would have taken",
)
NO_IO = Check(
    reason="NoIo",
    what="completed operations inside the window",
    invalid=1,
    direction=Direction.BELOW,
    remedy="look for a stalled cluster or a tool that did something else; a longer runtime helps very slow storage",
)
SERIES_INCOMPLETE = Check(
    reason="SeriesIncomplete",
    what="operations without a complete series over time",
    suspect=0,
    remedy="the client's mean rate was used inside the window, which hides stalls; check the tool's logs",
)
CLOCK_UNKNOWN = Check(
    reason="ClockUnknown",
    what="clients whose clock was not compared, or not to within the 10 ms that are judged",
    suspect=0,
    remedy="check the connection between conductor and client; without it the window rests on trust",
)
CLOCK_OFFSET = Check(
    reason="ClockOffset",
    what="certain difference between the client's clock and the conductor's",
    unit="ms",
    suspect=10,
    invalid=50,
    remedy="synchronise the nodes' clocks (chrony, ntp)",
)
HISTOGRAM_MISMATCH = Check(
    reason="HistogramMismatch",
    what="operations whose latency histogram does not hold exactly the operations done",
    invalid=0,
    remedy="check the tool's version and its raw output; its percentiles would be of something else",
)
STALLED = Check(
    reason="Stalled",
    what="part of the window in which no client completed anything",
    unit="%",
    suspect=0,
    invalid=10,
    remedy="look for what stopped the storage just then: peering, slow operations, a full device, a lost path",
)
CLIENT_STALLED = Check(
    reason="ClientStalled",
    what="part of the window in which one client completed nothing while others did",
    unit="%",
    suspect=0,
    invalid=10,
    remedy="look at the client's node and at what its volume alone depends on",
)
NOT_STEADY = Check(
    reason="NotSteady",
    what=(
        "rates and 99th percentiles beyond SNIA's criterion: over five rounds range 20 %, drift 10 % of the mean; "
        "in a window under 50 s rates beyond five times as much"
    ),
    suspect=0,
    remedy="lengthen ramp and runtime, or set prepare.precondition; the mean depends on when it was taken",
)
TOO_FEW_SAMPLES = Check(
    reason="TooFewSamples",
    what="timed operations of one kind",
    suspect=1000,
    direction=Direction.BELOW,
    remedy="lengthen the runtime; with fewer than 10 operations beyond it the 99th percentile is absent",
)
SUBMISSION_BOUND = Check(
    reason="SubmissionBound",
    what="part of the time that the tool's threads spent in submitting",
    unit="%",
    suspect=90,
    remedy="use direct I/O or more jobs; a submission that blocks keeps the queue from being as deep as asked",
)
THINKING_SECONDS = 10e-6
"""What a tool needs from a completion to the next submission, at most; fio was seen to take 2 to 8 microseconds."""
THINKING_SHARE = 0.25
"""Of the operations asked for: a tool that leaves out more than this is itself what limits the rate."""

LITTLES_LAW = Check(
    reason="LittlesLaw",
    what=(
        "difference between the operations in flight, as rate and latency give them, and those asked for, without what "
        "the tool's 10 µs between two operations explain, which is a quarter at most"
    ),
    unit="%",
    suspect=5,
    remedy="give the client more processor time or the tool more jobs; the load was not the one that was asked for",
)
NO_TRIAL_COUNTS = Check(
    reason="NoTrialCounts",
    what="repetitions that count",
    invalid=1,
    direction=Direction.BELOW,
    remedy="remove the causes that the trials name, then run again",
)
PASSES_MISSING = Check(
    reason="PassesMissing",
    what="planned repetitions that do not count",
    suspect=0,
    remedy="the numbers rest on the others; remove the causes, then run again",
)
ATTEMPTS_REPLACED = Check(
    reason="AttemptsReplaced",
    what="attempts that were replaced by another",
    suspect=0,
    remedy="remove the causes, then run again; what is repeated until it looks good shows the storage at its best",
)
UNREPLICATED = Check(
    reason="Unreplicated",
    what="repetitions that count",
    suspect=2,
    direction=Direction.BELOW,
    remedy="set repetitions to 3 or more, or run again; one trial says nothing about how far the next would differ",
)
VERSIONS_CHANGED = Check(
    reason="VersionsChanged",
    what="versions of the tool over the repetitions that count",
    suspect=1,
    remedy="run again with one version; a mean over two of them is that of neither",
)

CHECKS = (
    TOOL_FAILED,
    OUTPUT_UNREADABLE,
    CLIENT_MISSING,
    LATE_CLIENT,
    EARLY_CLIENT,
    SHORT_RUN,
    LOW_OVERLAP,
    WIDE_SPREAD,
    TOOL_TOO_OLD,
    NOT_PREFILLED,
    SHORT_IO,
    DROPPED_IO,
    LOST_IO,
    NO_IO,
    SERIES_INCOMPLETE,
    CLOCK_UNKNOWN,
    CLOCK_OFFSET,
    HISTOGRAM_MISMATCH,
    *HOST_CHECKS,
    STALLED,
    CLIENT_STALLED,
    NOT_STEADY,
    TOO_FEW_SAMPLES,
    SUBMISSION_BOUND,
    LITTLES_LAW,
    *CLUSTER_CHECKS,
    *TERMS_CHECKS,
    NO_TRIAL_COUNTS,
    PASSES_MISSING,
    ATTEMPTS_REPLACED,
    UNREPLICATED,
    VERSIONS_CHANGED,
)


def markdown_table(checks: Sequence[Check] = CHECKS) -> str:
    """Return the table of checks as Markdown, for the documentation."""
    rows = [
        "| Reason | What is measured | Suspect | Invalid | What to do |",
        "|---|---|---|---|---|",
        *(
            f"| `{check.reason}` | {check.what} | {check.limit_text(check.suspect)} "
            f"| {check.limit_text(check.invalid)} | {check.remedy} |"
            for check in checks
        ),
    ]
    return "\n".join(rows) + "\n"
