"""The frozen plan: everything that operator, conductor and agents need of a run, fixed before it starts."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.model import Model
from plimsoll.api.run import Gates, Prepare, Timeouts, Volume

SCHEMA_VERSION = 1
MAX_POINTS = 512


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


class Plan(Model):
    """A run, frozen.

    Attributes:
        seed: where the order and every client's random numbers come from.
        clients: how many clients the run has.
        order: for each pass the indices of `points` in the order in which they are measured.

    """

    schema_version: Literal[1] = SCHEMA_VERSION
    run: RunIdentity
    runner_image: str = ""
    seed: int
    clients: int
    repetitions: int
    points: Annotated[tuple[Point, ...], Field(min_length=1, max_length=MAX_POINTS)]
    order: tuple[tuple[int, ...], ...]
    volume: Volume | None
    prepare: Prepare
    gates: Gates
    timeouts: Timeouts

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
        return Plan.model_validate_json(text)
    except ValidationError as error:
        raise SpecError(problems_of(error)) from error
