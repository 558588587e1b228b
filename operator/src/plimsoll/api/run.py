"""`BenchmarkRun`: what a user asks for.

The tool parameters of a workload stay as they were written here; `tools.decode` gives them their types. That
keeps this layer free of tools, and makes a sweep the same thing for all of them.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, ValidationError, model_validator

from plimsoll.api.errors import Problem, SpecError, field_path, problems_of
from plimsoll.api.manifest import read_manifest
from plimsoll.api.model import Flag, Integer, Model
from plimsoll.api.names import API_VERSION, DNS_LABEL_PATTERN, HEALTH_CHECK_PATTERN, RUN_KIND
from plimsoll.api.quantity import Size
from plimsoll.api.storage import DnsLabel, SecretReference, Storage
from plimsoll.api.wording import shown

MAX_CLIENTS = 1000
MAX_WORKLOADS = 32
MAX_AXIS_VALUES = 64
MAX_REPETITIONS = 10
_MAX_SECONDS = 30 * 24 * 3600
_MAX_TTL_SECONDS = 10 * 365 * 24 * 3600
_GENERIC_WORKLOAD_FIELDS = ("name", "clients", "runtimeSeconds", "rampSeconds")

WorkloadName = Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=32)]
Percent = Annotated[Integer, Field(ge=1, le=100)]
HealthCheck = Annotated[str, Field(pattern=HEALTH_CHECK_PATTERN, max_length=64)]


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    problems = [
        Problem(field=f"[{number}]", value=str(value), remedy="stands in the list before; every value must occur once")
        for number, value in enumerate(values)
        if values.index(value) != number
    ]
    if problems:
        raise SpecError(problems)
    return values


class ObjectMeta(Model):
    """The part of a Kubernetes object's metadata that a run needs; the rest is kept out of the way."""

    model_config = Model.model_config | {"extra": "ignore"}

    name: DnsLabel
    namespace: DnsLabel = "default"
    uid: str = ""

    @model_validator(mode="before")
    @classmethod
    def _has_a_name_of_its_own(cls, document: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Results and resuming need a name that is known beforehand."""
        if isinstance(document, dict) and "name" not in document and "generateName" in document:
            raise SpecError([Problem(field="generateName", remedy="is not supported; write metadata.name instead")])
        return document


class Clients(Model):
    """The load generators.

    Attributes:
        network_bytes_per_second: what the network can carry between the storage and one client's node, where a client
            cannot find out by itself. Reads faster than that were answered by a cache.

    """

    count: Annotated[Integer, Field(ge=1, le=MAX_CLIENTS)] = 1
    spread: Literal["Required", "Preferred"] = "Required"
    network_bytes_per_second: Annotated[Size, Field(ge=2**10, le=2**50)] | None = None
    resources: Mapping[str, JsonValue] = Field(default_factory=dict)
    node_selector: Mapping[str, str] = Field(default_factory=dict)
    tolerations: tuple[Mapping[str, JsonValue], ...] = ()
    priority_class_name: str | None = None
    image_pull_secrets: tuple[SecretReference, ...] = ()


class Workload(Model):
    """One tool with its parameters, some of which are lists (sweep axes)."""

    name: WorkloadName
    tool: str
    parameters: Mapping[str, JsonValue]
    clients: (
        Annotated[
            tuple[Annotated[Integer, Field(ge=1, le=MAX_CLIENTS)], ...],
            Field(min_length=1, max_length=MAX_AXIS_VALUES),
            AfterValidator(_unique),
        ]
        | None
    ) = None
    runtime_seconds: Annotated[Integer, Field(ge=1, le=24 * 3600)] = 60
    ramp_seconds: Annotated[Integer, Field(ge=0, le=3600)] = 10

    @model_validator(mode="before")
    @classmethod
    def _name_the_tool(cls, document: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Take `{name: w, fio: {...}}` apart into tool and parameters."""
        if not isinstance(document, dict):
            return document
        tools = [key for key in document if key not in _GENERIC_WORKLOAD_FIELDS]
        if len(tools) != 1:
            raise ValueError(_one_tool(tools))
        (tool,) = tools
        parameters = {} if document[tool] is None else document[tool]
        if not isinstance(parameters, dict):
            remedy = f"is neither a tool with a mapping of parameters nor one of {', '.join(_GENERIC_WORKLOAD_FIELDS)}"
            raise SpecError([Problem(field=tool, value=shown(parameters), remedy=remedy)])
        generic = {key: value for key, value in document.items() if key != tool}
        return {**generic, "tool": tool, "parameters": parameters}

    @model_validator(mode="after")
    def _ramp_is_shorter_than_runtime(self) -> Self:
        if self.ramp_seconds >= self.runtime_seconds:
            remedy = (
                f"must be less than runtimeSeconds, which is {self.runtime_seconds}; lower it, or measure for longer"
            )
            raise SpecError([Problem(field="rampSeconds", value=str(self.ramp_seconds), remedy=remedy)])
        return self


def _one_tool(found: list[str]) -> str:
    if not found:
        return "has no tool; add one such as fio with a mapping of its parameters"
    others = ", ".join(_GENERIC_WORKLOAD_FIELDS)
    return f"must have one tool besides {others}, but has {' and '.join(found)}; remove one or correct its spelling"


class Precondition(Model):
    """Random overwriting of the prefilled data set, so that the storage is measured as used and not as new."""

    block_size: Annotated[Size, Field(ge=512, le=64 * 2**20, multiple_of=512)] = 65536
    seconds: Annotated[Integer, Field(ge=1, le=24 * 3600)] = 600


class Prepare(Model):
    """What is done to every volume before the first trial, in this order: discard, prefill, precondition, settle."""

    prefill: Flag = True
    precondition: Precondition | None = None
    discard: Flag = True
    drop_caches: Flag = False
    settle_seconds: Annotated[Integer, Field(ge=0, le=24 * 3600)] = 10
    fill_percent: Percent = 80

    @model_validator(mode="after")
    def _overwrites_what_was_written(self) -> Self:
        if self.precondition is not None and not self.prefill:
            remedy = (
                "must be true, because precondition overwrites what the prefill wrote; set it to true, or leave out "
                "precondition"
            )
            raise SpecError([Problem(field="prefill", value="false", remedy=remedy)])
        return self


class Gates(Model):
    """Conditions on the cluster that must hold before, during and after a trial.

    Attributes:
        accepted_health_checks: Ceph's health checks that may stand, such as `MON_DISK_LOW`.

    """

    ceph_health: Literal["Required", "Ignored"] = "Required"
    accepted_health_checks: Annotated[tuple[HealthCheck, ...], Field(max_length=32), AfterValidator(_unique)] = ()
    pause_scrub: Flag = True


class Timeouts(Model):
    """No wait is without an end."""

    provision_seconds: Annotated[Integer, Field(ge=1, le=_MAX_SECONDS)] = 600
    ready_seconds: Annotated[Integer, Field(ge=1, le=_MAX_SECONDS)] = 300
    total_seconds: Annotated[Integer, Field(ge=1, le=_MAX_SECONDS)] = 14400


class RunSpec(Model):
    """The specification of a run."""

    storage: Storage | None = None
    clients: Clients = Clients()
    workloads: Annotated[tuple[Workload, ...], Field(min_length=1, max_length=MAX_WORKLOADS)]
    repetitions: Annotated[Integer, Field(ge=1, le=MAX_REPETITIONS)] = 5
    prepare: Prepare = Prepare()
    gates: Gates = Gates()
    timeouts: Timeouts = Timeouts()
    cleanup: Literal["Always", "OnSuccess", "Never"] = "Always"
    results: Literal["Delete", "Retain"] = "Delete"
    ttl_seconds_after_finished: Annotated[Integer, Field(ge=0, le=_MAX_TTL_SECONDS)] | None = None
    suspend: Flag = False

    @model_validator(mode="after")
    def _workloads_fit_together(self) -> Self:
        problems = [*_same_names(self.workloads), *_too_many_clients(self.workloads, self.clients.count)]
        if problems:
            raise SpecError(problems)
        return self


def _same_names(workloads: tuple[Workload, ...]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, workload in enumerate(workloads):
        if first.setdefault(workload.name, index) != index:
            remedy = f"is the name of workloads[{first[workload.name]}] already; give each workload its own"
            yield Problem(field=f"workloads[{index}].name", value=shown(workload.name), remedy=remedy)


def _too_many_clients(workloads: tuple[Workload, ...], count: int) -> Iterator[Problem]:
    for index, workload in enumerate(workloads):
        for number, clients in enumerate(workload.clients or ()):
            if clients > count:
                remedy = f"is more than spec.clients.count, which is {count}; raise that or lower the axis"
                field = field_path(["workloads", index, "clients", number])
                yield Problem(field=field, value=str(clients), remedy=remedy)


class BenchmarkRun(Model):
    """A run as a user writes it or as the API server stores it; `status` is not read from here."""

    api_version: Literal["plimsoll.dev/v1alpha1"]
    kind: Literal["BenchmarkRun"]
    metadata: ObjectMeta
    spec: RunSpec

    @model_validator(mode="before")
    @classmethod
    def _without_status(cls, document: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(document, dict):
            return document
        return {key: value for key, value in document.items() if key != "status"}


def load_run(text: str) -> BenchmarkRun:
    """Read one `BenchmarkRun` from YAML or JSON text.

    Raises:
        SpecError: naming every field that is wrong, its value and the remedy.

    """
    return decode_run(read_manifest(text))


def decode_run(document: JsonValue) -> BenchmarkRun:
    """Read a `BenchmarkRun` from plain JSON values, as the API server and YAML give them.

    Raises:
        SpecError: naming every field that is wrong, its value and the remedy.

    """
    if not isinstance(document, dict):
        what = "is empty" if document is None else "is not a mapping"
        raise SpecError([Problem(field="", remedy=f"{what}; write one {RUN_KIND} of {API_VERSION}")])
    try:
        # By alias alone: `settle_seconds` is no name that the API server knows.
        return BenchmarkRun.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error)) from error
