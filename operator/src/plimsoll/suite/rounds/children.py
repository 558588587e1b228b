"""The runs of the active round: which turns are over, and which run comes next.

A run is created again only if it was never seen: a kill between the two writes leaves it unknown whether it was
created. Once the status has its name, a run that is gone was deleted by a user; its turn is over without numbers.
"""

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.state import ActiveRound
from plimsoll.suite.rounds.turns import Member


def advanced(active: ActiveRound, members: Sequence[Member]) -> ActiveRound:
    """Return the round after all turns that are over."""
    while not active.is_measured:
        member = members[active.done]
        is_gone = member.run is None and active.current == member.name
        if member.run is None and not is_gone:
            return replace(active, current="")
        if member.run is not None and not member.run.is_finished:
            return replace(active, current=member.name)
        active = replace(active, done=active.done + 1, current="")
    return active


def next_member(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> Member | None:
    """Return the turn whose run is to be created; None while any run of the suite may load the storage."""
    if active.is_measured or seen.unfinished:
        return None
    member = members[active.done]
    return member if member.run is None else None
