"""The check on the cells of a matrix, with its limit and what to do when it fails."""

from plimsoll.measure.checking.check import Check, Direction

LINK_OUTLIER = Check(
    reason="LinkOutlier",
    what=(
        "rate from one client to another, as a part of the median of the other pairs whose nodes carry as many pairs "
        "in a round; not with fewer than three pairs, nor between clients on one node"
    ),
    unit="%",
    # Healthy links between like nodes differ by 1 to 2 %, virtual machines by 10 %. The mildest fault, a link that
    # carries another flow, leaves half, and a link at a lower speed a tenth.
    suspect=70,
    direction=Direction.BELOW,
    remedy=(
        "check cable, port, negotiated speed, MTU and bond of the node, and what else uses the link; storage that uses "
        "it is slow too"
    ),
)

LINK_CHECKS = tuple(value for value in tuple(globals().values()) if isinstance(value, Check))
