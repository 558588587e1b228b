"""The steps of the reconciler's loop, which differ between kinds."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from plimsoll.kube.port import Kind
from plimsoll.lifecycle.decision import Action, DecisionOf, Refusal, Removal
from plimsoll.reconcile.records import Record, Records

Body = Mapping[str, Any]
"""An object as a watch shows it, possibly older than what the operator wrote."""


class Subject(Protocol):
    """An object as decisions read it."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        ...


T = TypeVar("T", bound=Subject)
S = TypeVar("S")
M = TypeVar("M")
A = TypeVar("A")


class Steps(ABC, Generic[T, S, M, A]):
    """The steps for one kind: `T` is an object, `S` what is observed of it, `M` its state in memory, `A` an action.

    Attributes:
        kind: of the objects in the API.
        records: the state of each object.

    """

    kind: ClassVar[Kind]
    records: Records[M]

    @abstractmethod
    def read(self, body: Body) -> T:
        """Return an object as decisions read it."""

    @abstractmethod
    async def observe(self, subject: T, record: Record[M]) -> S:
        """Observe an object.

        Raises:
            ApiError: if it cannot be observed. If that is refused, the loop updates the status.

        """

    @abstractmethod
    def decide(self, subject: T, seen: S, record: Record[M]) -> DecisionOf[A]:
        """Return what to do for an object now, and its status."""

    @abstractmethod
    async def act(self, subject: T, actions: Sequence[A], record: Record[M]) -> None:
        """Perform actions for an object.

        Raises:
            ApiError: if one failed. The loop records it until all succeed.

        """

    @abstractmethod
    def decide_unseen(self, subject: T, refusal: Refusal) -> DecisionOf[A] | None:
        """Return the status of an object that the operator may not observe, without actions; None for no change."""

    def status_written(self, subject: T, status: Mapping[str, Any]) -> None:
        """Handle a written status. `subject` has the one before."""


class RemovalSteps(Steps[T, S, M, Action]):
    """The steps for a kind whose objects have to be cleaned up by the operator before they can go."""

    @abstractmethod
    async def observe_removal(self, subject: T, record: Record[M]) -> S:
        """Observe what has to be removed of a deleted object.

        Raises:
            ApiError: if it cannot be observed. If that is refused, the loop updates the status.

        """

    @abstractmethod
    def decide_removal(self, subject: T, seen: S, record: Record[M]) -> Removal:
        """Return what to do before a deleted object can go, and its status."""

    @abstractmethod
    def status_of_unseen_removal(self, subject: T, refusal: Refusal) -> Mapping[str, Any]:
        """Return the status of a deleted object that the operator may not observe."""

    def pause_removal(self, record: Record[M]) -> None:
        """Drop large state: the removal never continues if a user removes the finalizer."""
