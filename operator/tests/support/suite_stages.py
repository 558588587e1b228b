"""Every status that a suite has while its rounds are measured, as the operator writes it."""

from collections.abc import Iterator
from copy import deepcopy

from support.pretend_cluster import Document
from support.pretend_suites import NAME, UID, PretendSuites
from support.suite_documents import suite_document

_MOST_RUNS = 50


def suite_object(world: PretendSuites) -> Document:
    """Return the suite as the API server has it."""
    document = suite_document(NAME, **world.spec)
    metadata = {"name": NAME, "namespace": "bench", "uid": UID, "generation": world.generation}
    status = world.status or {"observedGeneration": -1}
    return deepcopy({**document, "metadata": metadata | {"annotations": world.annotations}, "status": status})


def suite_stages(world: PretendSuites) -> Iterator[Document]:
    """Yield a suite at every change, beginning with the present one, until no round is active or due."""
    last = suite_object(world)
    yield last
    for _ in range(_MOST_RUNS):
        while world.look().actions:
            if (now := suite_object(world)) != last:
                last = now
                yield last
        if world.finish() is None:
            return
    message = "rounds never end"
    raise AssertionError(message)
