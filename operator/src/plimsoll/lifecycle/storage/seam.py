"""The seam between a run and its storage: a provider, its resources, and the two walks along them.

A run's storage is one ordered list of resources; each depends on those before it. The operator walks it forwards to
provision and backwards to tear down. Only a provider knows the resources.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypeAlias, TypeVar

from plimsoll.api.environment import PlatformEnvironment
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.decision import Action, Fact, RunEnding, Teardown
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Platform, Run, Settings, environment_of
from plimsoll.plan.document import Plan

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query for the object with a name, or for all objects with these labels and fields that `keep` wants."""

    api_version: str
    kind: str
    namespace: str = ""  # empty for all namespaces, and for a cluster-scoped kind
    name: str = ""  # empty for all names
    labels: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    keep: Callable[[Object], bool] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A dry run of a creation with all fields. The answer is empty, or an object with the `message` of its refusal."""

    obj: Object


Answers: TypeAlias = Sequence[Sequence[Object]]  # the objects found, query by query
Look: TypeAlias = Generator[Sequence[Query | Rehearsal], Answers, Found]
"""A look yields batches of queries. The queries of one batch are sent concurrently."""


class UnansweredError(Exception):
    """A query without an answer: the operator lacks a permission, or the API server does not know the kind."""

    def __init__(self, reason: str, *, is_forbidden: bool) -> None:
        self.reason = reason
        self.is_forbidden = is_forbidden
        super().__init__(reason)


StorageSpec = Mapping[str, Any]  # `spec.storage` as stored; this version may understand only a part of it


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A run and what is observed of it, as input for its storage."""

    run: Run
    seen: Observed
    settings: Settings
    now: datetime

    @property
    def in_use(self) -> bool:
        return bool(self.seen.jobs)


class Resource(ABC):
    """One part of a run's storage. Its methods keep no state: the operator may die between two requests."""

    bound_by_clients: ClassVar[bool] = False
    """Whether it becomes ready only once clients use it, so that they are created before it is ready."""

    def desired(self) -> Iterable[Action]:
        """Return the creation of what is missing, once all before it are ready; in use, only what no trial notices."""
        return ()

    @abstractmethod
    def ready(self) -> Fact:
        """Return whether the resources after it can be created."""

    def is_usable(self) -> bool:
        """Whether clients can be created: it is ready or, if clients have to bind it, it exists."""
        return not [*self.desired()] if self.bound_by_clients else bool(self.ready().holds)

    def is_schedulable(self) -> bool:
        """Whether the scheduler accepts a pod that uses it, rather than pausing for a second after rejecting it."""
        return True

    def restore(self, *, is_needed: bool) -> Teardown | None:
        """Return the next step of restoring what a conductor left changed, or of ending that; None if it is done."""
        return None

    def remove(self) -> Teardown | None:
        """Return the next step of its removal, after those after it and all clients; None if nothing is left."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The storage of one run."""

    resources: Sequence[Resource]  # each depends on those before it
    kept: Sequence[str]  # existing objects with data, and what removes it: `CephBlockPool plimsoll-a-0123abcd`
    in_use: bool  # whether clients may be using it

    def missing(self) -> Iterator[Action]:
        """Walk forwards: yield the creations due now, up to what is not usable, and PVCs that running clients lost."""
        is_blocked = False
        for resource in self.resources:
            if not is_blocked or (self.in_use and resource.bound_by_clients):
                yield from resource.desired()
            is_blocked = is_blocked or not resource.is_usable()

    def is_provided(self) -> bool:
        """Whether clients can be created. While some are running, only the resources that clients bind count."""
        return all(resource.is_usable() for resource in self.resources if resource.bound_by_clients or not self.in_use)

    def is_schedulable(self) -> bool:
        return all(resource.is_schedulable() for resource in self.resources)

    def fact(self) -> Fact:
        """Return StorageReady: the fact of the first resource that is not ready. One without a message is not shown."""
        facts = [fact for resource in self.resources if (fact := resource.ready()).message]
        if not facts:
            return Fact.true(Reason.NOT_NEEDED, "no workload uses a volume")
        return next((fact for fact in facts if not fact.holds), facts[-1])

    def restoration(self, *, is_needed: bool) -> Teardown | None:
        steps = (resource.restore(is_needed=is_needed) for resource in self.resources)
        return next((step for step in steps if step is not None), None)

    def removal(self) -> Teardown | None:
        """Walk backwards: return the next step of the removal; None if nothing is left."""
        return next((step for resource in reversed(self.resources) if (step := resource.remove()) is not None), None)


class Provider(ABC):
    """A kind of storage, without state. `provides`, `targets` and `resources` are required."""

    is_polled: ClassVar[bool] = False
    """Whether the operator polls its objects every second until they are ready, because it does not watch them."""

    @abstractmethod
    def provides(self, storage: StorageSpec) -> bool:
        """Whether a run with this `spec.storage` uses this provider."""

    @abstractmethod
    def targets(self, storage: StorageSpec) -> frozenset[str]:
        """Return what a run with this `spec.storage` loads: runs with a common target take turns. Never raises."""

    @abstractmethod
    def resources(self, view: View) -> Sequence[Resource]:
        """Return the run's resources in order, including its clients' `Claims`."""

    def kept(self, view: View) -> Sequence[str]:
        """Return the existing objects, without PVCs, that `cleanup` can keep: kinds and names."""
        return ()

    def claims_class(self, run: Run) -> str:
        """Return the StorageClass for tools that create PVCs themselves; empty if there is none."""
        return ""

    # Without a run

    def version(self, storage: StorageSpec, namespace: str, settings: Settings) -> Look[str] | None:
        """Return the look at the version of Ceph, empty if unknown or mixed; None if only a run can find it out."""
        return None

    # Before there is a plan

    def rejection(self, run: Run, settings: Settings) -> RunEnding | None:
        """Return why a run may not use this storage in any state of the cluster; None if it may."""
        return None

    def survey(self, run: Run) -> Look[object] | None:
        """Return the look at existing storage before anything is created; its result becomes `Platform.storage`."""
        return None

    def blocker(self, document: BenchmarkRun, platform: Platform) -> Fact | None:
        """Return why no plan can be frozen yet: a RunEnding if the run fails, a Fact if it waits."""
        return None

    def environment(self, document: BenchmarkRun, platform: Platform) -> PlatformEnvironment:
        """Return what the plan records about the cluster and its storage, bounded in size."""
        return environment_of(platform, None)

    def complete_plan(self, plan: Plan, platform: Platform) -> Plan:
        """Return the plan with values for what the user left open."""
        return plan

    # With a plan

    def look(self, view: View) -> Look[object] | None:
        """Return the look at a run's objects outside its namespace; None if there can be none.

        Its result becomes `Observed.external`. The view contains only the run's namespace. `run.document` may be None:
        a version that cannot read the specification still cleans up.
        """
        return None

    def limitation(self, plan: Plan) -> str:
        return ""
