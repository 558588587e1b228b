"""The checks on a search for the line, which look at the outcomes of all its probes."""

from plimsoll.measure.checking.check import Check

NOT_MONOTONE = Check(
    reason="NotMonotone",
    what=(
        "in a search for the line: how much likelier the outcomes are if one range of loads has a probability of its "
        "own (a Bayes factor)"
    ),
    suspect=20,
    remedy=(
        "look at latency against load for what breaks at these loads and holds at higher ones, such as a device that "
        "saves power; the storage has no single line"
    ),
)
DRIFTING = Check(
    reason="Drifting",
    what="in a search for the line: how much likelier the outcomes are if the line moves steadily (a Bayes factor)",
    suspect=20,
    remedy=(
        "precondition the storage, let it settle, and look for other load, then run again; the interval lies around a "
        "line that moved"
    ),
)

LINE_CHECKS = tuple(value for value in tuple(globals().values()) if isinstance(value, Check))
