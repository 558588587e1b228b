"""Reasons of an attempt that produced no numbers."""

from collections.abc import Mapping

from plimsoll.api.names import AbortReason
from plimsoll.api.reasons.entry import Explanation

ATTEMPT_REASONS: Mapping[AbortReason, Explanation] = {
    AbortReason.CLIENT_LOST: Explanation(
        "a client of the trial died, was replaced, or sent nothing for 20 s",
        "check its pod and node: memory, eviction, network",
    ),
    AbortReason.CLIENT_NOT_STAGED: Explanation(
        "a client could not write the data that the trial reads, or not in time",
        "check the pool and the client's termination message",
    ),
    AbortReason.CACHES_NOT_DROPPED: Explanation(
        "the caches of a client's node, or of the OSDs, were not dropped before the trial; the message names the node "
        "and the cause",
        "check the helper's pod on that node: `kubectl -n plimsoll-caches logs`",
    ),
    AbortReason.CLIENT_NOT_ARMED: Explanation(
        "a client did not report in time that it is armed, or could not build the command; no client did any I/O",
        "check the load and the network of its node; the message names an impossible parameter",
    ),
    AbortReason.LATE_CLIENT: Explanation(
        "a client did not start at T0",
        "check for other load on its node; give the clients more CPU",
    ),
    AbortReason.TOOL_OVERRAN: Explanation("no result 45 s after the planned end", "check whether the storage hangs"),
    AbortReason.RESULT_REFUSED: Explanation(
        "the conductor rejected a client's document: larger than 16 MiB, or not of its version",
        "the message names the cause; report a bug",
    ),
    AbortReason.CONDUCTOR_RESTARTED: Explanation(
        "the conductor died during the attempt",
        "check the log of the conductor's earlier pod: memory, eviction",
    ),
    AbortReason.INTERRUPTED: Explanation("the run was suspended, or the conductor was asked to stop"),
    AbortReason.DEADLINE_EXCEEDED: Explanation("`totalSeconds` elapsed", "raise it, or plan fewer trials"),
}
