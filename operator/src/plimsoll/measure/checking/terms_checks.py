"""The part of the table of checks that is about the terms of a trial: what is beyond its limit is judged by `terms`."""

from plimsoll.measure.checking.check import Check, Direction

RUNTIME_TOO_SHORT = Check(
    reason="RuntimeTooShort",
    what=(
        "runtimeSeconds, as a part of the least that the tool needs: 3 s for fio, rados bench and rbd bench, ten times "
        "as long without a ramp"
    ),
    unit="%",
    suspect=100,
    direction=Direction.BELOW,
    remedy="raise runtimeSeconds (60 or more for numbers to rely on), and set rampSeconds to 1 or more",
)
MIXED_VERSIONS = Check(
    reason="MixedVersions",
    what="versions of the tool that the clients ran",
    suspect=1,
    remedy="give all clients one image, or one version of the tool; the sum is of two different load generators",
)
CLIENTS_UNEVEN = Check(
    reason="ClientsUneven",
    what=(
        "operations of one client, as a part of what the others did on average; or the median of the others, as a part "
        "of what a faster client did, also if clients that share a node share its rate; less what chance explains"
    ),
    unit="%",
    suspect=50,
    invalid=10,
    direction=Direction.BELOW,
    remedy=(
        "look at the client's node, its network and its volume, behind a fast one for a cache, another device or "
        "sparse data, or measure unlike clients in runs of their own; the sum hides that they did not share the load"
    ),
)

TERMS_CHECKS = (RUNTIME_TOO_SHORT, MIXED_VERSIONS, CLIENTS_UNEVEN)
