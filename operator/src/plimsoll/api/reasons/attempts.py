"""The reasons why an attempt has no numbers."""

from collections.abc import Mapping

from plimsoll.api.names import AbortReason, Cause
from plimsoll.api.reasons.entry import AttemptExplanation

ATTEMPT_REASONS: Mapping[AbortReason, AttemptExplanation] = {
    AbortReason.CLIENT_LOST: AttemptExplanation(
        "a client of the trial died, was replaced, or sent nothing for 20 s",
        "check its pod and node: memory, eviction, network",
    ),
    AbortReason.CLIENT_NOT_STAGED: AttemptExplanation(
        "a client could not write the data that the trial reads, or not within the timeout",
        "check the pool and the client's termination message",
        cause=Cause.STORAGE,
    ),
    AbortReason.CACHES_NOT_DROPPED: AttemptExplanation(
        "the caches of a client's node, or of the OSDs, were not dropped before the trial; the message names the "
        "node and what failed. The cause is storage if the time ran out, or the OSDs failed",
        "check the helper's pod on that node: `kubectl -n plimsoll-caches logs`",
    ),
    AbortReason.CLIENT_NOT_ARMED: AttemptExplanation(
        "a client did not report in time that it is armed, or could not build the command; no client did any I/O. "
        "The cause is storage if the client accesses files before: with `bonnie`, with `readBack: NextClient`, and if "
        "the time ran out for a tool that uses a volume",
        "check the load and the network of its node; the message names an impossible parameter",
    ),
    AbortReason.LATE_CLIENT: AttemptExplanation(
        "a client did not start at T0", "check for other load on its node; give the clients more CPU"
    ),
    AbortReason.TOOL_OVERRAN: AttemptExplanation(
        "no result 45 s after the planned end", "check whether the storage hangs", cause=Cause.STORAGE
    ),
    AbortReason.RESULT_REFUSED: AttemptExplanation(
        "the conductor rejected a client's document: larger than 16 MiB, or of another version",
        "the message names the cause; report a bug",
    ),
    AbortReason.CONDUCTOR_RESTARTED: AttemptExplanation(
        "the conductor died during the attempt; if its clients were about to start, it counts as replaced, as after a "
        "suspension",
        "check the log of the conductor's earlier pod: memory, eviction",
    ),
    AbortReason.INTERRUPTED: AttemptExplanation("the run was suspended, or the conductor was asked to stop"),
    AbortReason.DEADLINE_EXCEEDED: AttemptExplanation("`totalSeconds` elapsed", "raise it, or plan fewer trials"),
    AbortReason.CLUSTER_AT_RISK: AttemptExplanation(
        "a health check appeared after which Ceph may stop all writes, or one in `gates.stopOn`; the run ended with "
        "the attempt",
        "see the reason of `Succeeded`",
    ),
    AbortReason.QUOTA_REACHED: AttemptExplanation(
        "a pool of the run reached its quota, where writes hang; the run ended with the attempt",
        "see the reason of `Succeeded`",
    ),
}
