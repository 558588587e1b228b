"""The runs of the active round: which turns are over, and which run comes next.

The status names a run before it is created, and has its UID once it was seen. Before that, a kill leaves it unknown
whether it was created, so it is created again. After that, a run that is gone was deleted by a user; its turn is over
without numbers. A list may lack a run that exists: it is gone only if the API server does not find it by its name.
"""

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.state import ActiveRound
from plimsoll.suite.rounds.turns import Member


def advanced(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> ActiveRound:
    """Return the round after all turns that are over."""
    while not active.is_measured:
        member = members[active.done]
        was_seen = active.current == member.name and bool(active.uid)
        if member.run is None and not (was_seen and member.name in seen.memory.absent):
            return active if was_seen else replace(active, current=member.name, uid="")
        if member.run is not None and not member.run.is_finished:
            return replace(active, current=member.name, uid=member.run.uid)
        active = replace(active, done=active.done + 1, current="", uid="")
    return active


def next_member(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> Member | None:
    """Return the turn whose run is to be created; None while any other run of the suite may load the storage.

    If another run has its name, the creation is refused, which names that run.
    """
    if active.is_measured or active.uid:
        return None
    member = members[active.done]
    is_loaded = any(run.name != member.name for run in seen.unfinished)
    return None if is_loaded or member.run is not None else member


def unconfirmed_name(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> str:
    """Return the name of a run that was seen, and that the list lacks or shows as it was before; empty if none is.

    Of a measured round every run is needed, or the certainty that it is gone.
    """
    if not active.is_measured:
        return active.current if active.uid and members[active.done].run is None else ""
    asked = seen.memory.absent | seen.memory.found.keys()
    doubtful = (one.name for one in members if one.run is None or not one.run.is_finished)
    return next((name for name in doubtful if name not in asked), "")
