"""Every status that a run really has, in order, as the operator writes it."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from support.pretend_cluster import Document
from support.pretend_world import PretendWorld, is_settled

_ROUNDS = 400


def stages(world: PretendWorld, uid: str) -> Iterator[Document]:
    """Yield a run at every change, beginning before the operator has seen it, until it is settled."""
    last: Document | None = None
    for _ in range(_ROUNDS):
        for act in _actors(world, uid):
            act()
            run = world.run(uid)
            if run is not None and run != last:
                last = deepcopy(run)
                yield last
        if is_settled(world.run(uid)):
            return
        world.cluster.pass_time(5.0)
    message = f"not in {_ROUNDS} rounds: {last}"
    raise AssertionError(message)


def _actors(world: PretendWorld, uid: str) -> Iterator[Callable[[], Any]]:
    """Yield everybody's next step; the first does nothing, so that what is there is seen before it changes."""
    yield lambda: None
    yield world.operator.watch_all
    for other in sorted({*world.operator.bodies, uid}):
        yield lambda other=other: world.look(other)  # type: ignore[misc]
    for _ in range(2):
        yield world.cluster.step
        yield world.rook.step
        yield world.conductors.step


def story(told: Iterator[str]) -> list[str]:
    """Return the statuses without repetitions."""
    words: list[str] = []
    for word in told:
        if words[-1:] != [word]:
            words.append(word)
    return words
