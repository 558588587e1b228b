"""The checks of tools whose clients have no common window: see `checks`."""

from plimsoll.measure.checking.check import Check, Direction

LONG_PAUSE_SECONDS = 1.0
LONG_PAUSE = Check(
    reason="LongPause",
    what=(
        "time in which a tool without a common window completed nothing, only if it is as long as ten operations and "
        f"{LONG_PAUSE_SECONDS:g} s, as a part of its time for the operation"
    ),
    unit="%",
    suspect=5,
    remedy="look for what stopped the storage or the client; the tool's mean rate includes the pause",
)
PHASES_APART = Check(
    reason="PhasesApart",
    what=(
        "time in which all clients were in the same phase of a tool, as a part of its mean length, estimated from the "
        "lengths of the phases before"
    ),
    unit="%",
    suspect=90,
    direction=Direction.BELOW,
    remedy=(
        "measure with one client, or with clients of equal speed; the rate of the phase is too high, because clients "
        "in other phases left it more of the storage"
    ),
)

PHASE_CHECKS = tuple(value for value in tuple(globals().values()) if isinstance(value, Check))
"""The checks of this module, in the order of definition."""
