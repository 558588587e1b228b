"""The frozen plan: everything that operator, conductor and agents need of a run, fixed before it starts."""

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, ValidationError, model_validator

from plimsoll.api.errors import Problem, SpecError, problems_of
from plimsoll.api.model import Model
from plimsoll.api.run import Gates, Prepare, Timeouts
from plimsoll.api.storage import KeyringReference, NamespacedName, Pool, Volume

MAX_POINTS = 512

_SCHEMA_VERSION = 1
_DAMAGED = "the plan is damaged"


class RunIdentity(Model):
    """Which run this is the plan of."""

    name: str
    namespace: str
    uid: str


class Point(Model):
    """One combination of axis values of one workload.

    Attributes:
        name: unique within the run: `<workload>-<number>`.
        parameters: the tool's scalar parameters, defaults included.
        label: the parameters as people say them.
        clients: how many of the run's clients take part.

    """

    name: str
    workload: str
    tool: str
    parameters: dict[str, JsonValue]
    label: str
    clients: int
    runtime_seconds: int
    ramp_seconds: int


class CephTarget(Model):
    """The Ceph cluster that a run measures, and what of it is the run's. Names are Ceph's own.

    Attributes:
        rook: the CephCluster object; absent without Rook.
        monitors: addresses; empty with Rook, where they are looked up when the run begins.
        pool: where images and objects are.
        data_pool: where the images' data goes; absent if that is the same pool.
        made: what the pool that is made for this run has to be; absent if it was there before.
        conductor_user: CephX user of the conductor, without `client.`.
        agent_user: CephX user of the agents.
        keyring: Secret in the run's namespace with the key of both users; absent with Rook.

    """

    rook: NamespacedName | None = None
    monitors: tuple[str, ...] = ()
    pool: str
    data_pool: str | None = None
    made: Pool | None = None
    conductor_user: str
    agent_user: str
    keyring: KeyringReference | None = None

    @property
    def pools(self) -> tuple[str, ...]:
        """Return all pools that the run's I/O goes to."""
        return (self.pool,) if self.data_pool is None else (self.pool, self.data_pool)


class Plan(Model):
    """A run, frozen.

    Attributes:
        seed: where the order and every client's random numbers come from.
        clients: how many clients the run has.
        order: for each pass the indices of `points` in the order in which they are measured.
        volume: what each client gets; None if no workload runs on one.
        ceph: None if what is measured is not known to be Ceph.
        network_bytes_per_second: as the user says; None if not.
        client_tokens: whether each client has a token of its own; runs of earlier versions have one for all.
        environment: what is known of the platform before anything runs: the cluster's version, the StorageClass.

    """

    schema_version: Literal[1] = 1
    run: RunIdentity
    runner_image: str = ""
    seed: int
    clients: int
    repetitions: int
    points: Annotated[tuple[Point, ...], Field(min_length=1, max_length=MAX_POINTS)]
    order: tuple[tuple[int, ...], ...]
    volume: Volume | None
    ceph: CephTarget | None = None
    network_bytes_per_second: int | None = None
    client_tokens: bool = False
    environment: dict[str, JsonValue] = Field(default_factory=dict)
    prepare: Prepare
    gates: Gates
    timeouts: Timeouts

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        """Check what a conductor takes for granted: every pass measures every point once, under a name of its own."""
        everything = list(range(len(self.points)))
        if len(self.order) != self.repetitions or any(sorted(indices) != everything for indices in self.order):
            remedy = f"must hold each of the {len(self.points)} points once in each of {self.repetitions} passes"
            raise SpecError([Problem(field="order", remedy=f"{remedy}; {_DAMAGED}")])
        if len({point.name for point in self.points}) != len(self.points):
            raise SpecError([Problem(field="points", remedy=f"must have names that differ; {_DAMAGED}")])
        return self

    def point(self, name: str) -> Point:
        """Return the point of that name; KeyError if there is none."""
        for point in self.points:
            if point.name == name:
                return point
        raise KeyError(name)


def load_plan(text: str) -> Plan:
    """Read a frozen plan.

    Raises:
        SpecError: if it is of another schema version or damaged.

    """
    try:
        version = _Versioned.model_validate_json(text).schema_version
        if version != _SCHEMA_VERSION:
            remedy = (
                f"is a version that this Plimsoll cannot read ({_SCHEMA_VERSION}); use the Plimsoll that made the plan"
            )
            raise SpecError([Problem(field="schemaVersion", value=str(version), remedy=remedy)])
        return Plan.model_validate_json(text, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error)) from error


class _Versioned(Model):
    """Any version of the document: of what else a later one holds, nothing can be said."""

    model_config = Model.model_config | {"extra": "ignore"}

    schema_version: int
