"""The two walks along a run's resources, and what every provider's list has to have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle.ceph.common import ExternalObjects
from plimsoll.lifecycle.decision import Action, Create, Fact, Teardown
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.storage.claims import Claims
from plimsoll.lifecycle.storage.registry import provider_of
from plimsoll.lifecycle.storage.seam import Resource, Storage, View
from support.pretend_cluster import START
from support.specs import SETTINGS, STORAGE, ceph_run


@dataclass(frozen=True, kw_only=True)
class Part(Resource):
    """A resource that is there or not. `words` is its message."""

    name: str
    there: bool = True
    holds: bool = True
    words: str = ""

    def desired(self) -> Iterable[Action]:
        return [] if self.there else [Create(obj={"metadata": {"name": self.name}})]

    def ready(self) -> Fact:
        return Fact(holds=self.there and self.holds, reason=Reason.READY, message=self.words)

    def remove(self) -> Teardown | None:
        fact = Fact(holds=False, reason=Reason.IN_PROGRESS, message=self.name)
        return Teardown(actions=(), fact=fact) if self.there else None


class ClientsPart(Part):
    """One that becomes ready only when clients use it."""

    bound_by_clients: ClassVar[bool] = True


def storage(*resources: Resource, in_use: bool = False) -> Storage:
    return Storage(resources=resources, kept=(), in_use=in_use)


def created(walked: Storage) -> Sequence[str]:
    return [action.obj["metadata"]["name"] for action in walked.missing() if isinstance(action, Create)]


def test_nothing_is_created_after_what_is_not_ready() -> None:
    assert created(storage(Part(name="a", there=False), Part(name="b", there=False))) == ["a"]
    assert created(storage(Part(name="a", holds=False), Part(name="b", there=False))) == []
    walked = storage(Part(name="a"), Part(name="b", there=False), ClientsPart(name="c", there=False))
    assert created(walked) == ["b"]
    assert not walked.is_provided()


def test_clients_need_their_volumes_to_be_there_and_not_to_be_ready() -> None:
    assert not storage(Part(name="a"), ClientsPart(name="c", there=False)).is_provided()
    assert storage(Part(name="a"), ClientsPart(name="c", holds=False)).is_provided()
    assert not storage(Part(name="a", holds=False), ClientsPart(name="c")).is_provided()


def test_clients_that_run_get_back_what_is_theirs_whatever_is_beneath() -> None:
    beneath = (Part(name="a", holds=False), Part(name="b", there=False))
    walked = storage(*beneath, ClientsPart(name="c", there=False), in_use=True)
    assert created(walked) == ["c"]
    assert not walked.is_provided()
    assert storage(*beneath, ClientsPart(name="c", holds=False), in_use=True).is_provided()


def test_the_first_that_is_not_ready_is_shown_if_it_has_words() -> None:
    silent, waiting = Part(name="a", holds=False), Part(name="b", holds=False, words="waits")
    assert storage(silent, Part(name="d", words="good"), waiting).fact().message == "waits"
    assert storage(silent, Part(name="d", words="good"), Part(name="e", words="better")).fact().message == "better"
    assert storage(silent).fact().reason is Reason.NOT_NEEDED


def test_what_comes_last_is_removed_first() -> None:
    steps = [storage(Part(name="a"), Part(name="b", there=there)).removal() for there in (True, False)]
    assert [step.fact.message for step in steps if step is not None] == ["b", "a"]
    assert storage(Part(name="a", there=False)).removal() is None


@pytest.mark.parametrize("external", [None, ExternalObjects()], ids=["not admitted", "admitted"])
@pytest.mark.parametrize("name", STORAGE)
def test_every_list_has_the_claims_of_the_clients(name: str, external: ExternalObjects | None) -> None:
    made = ceph_run(name)
    seen = Observed(plan=made.plan, results={}, warnings={}, external=external)
    resources = provider_of(made.run).resources(View(run=made.run, seen=seen, settings=SETTINGS, now=START))
    assert len([resource for resource in resources if isinstance(resource, Claims)]) == 1
