"""The custom resources; `hack/crds.py` generates their CRDs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from plimsoll.api.model import Model, Rule
from plimsoll.api.names import FORMS, GROUP, OBJECT_NAME_PATTERN, RESULT_KIND, RUN_KIND, SUITE_KIND
from plimsoll.api.result import ResultSpec, ResultStatus
from plimsoll.api.run import RunSpec
from plimsoll.api.status import BenchmarkRunStatus, ResultDisplay
from plimsoll.api.suite import MAX_SUITE_NAME, SuiteSpec
from plimsoll.api.suite_status import BenchmarkSuiteStatus


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`."""

    name: str  # heading
    path: str  # path of the field, such as `.spec.run`; the column has its description
    type: Literal["string", "integer", "boolean", "date"] = "string"  # type of the value
    wide: bool = field(default=False, kw_only=True)  # whether the column is only shown with `-o wide`


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """A custom resource."""

    name: str  # kind, such as `BenchmarkRun`; the plural has an s
    short_name: str  # short name for kubectl
    description: str  # meaning of an object of this kind
    spec: type[Model]  # model of the specification
    status: type[Model]  # model of the status
    initial_status: Mapping[str, JsonValue] = field(default_factory=dict)  # default of a new object's status
    columns: tuple[PrinterColumn, ...]  # columns in order
    rules: tuple[Rule, ...]  # rules for the whole object

    @property
    def plural(self) -> str:
        return f"{self.name.lower()}s"

    @property
    def file_name(self) -> str:
        return f"{self.plural}.{GROUP}.yaml"


class StoredResultStatus(ResultStatus):
    """The measured numbers. Only the run's conductor writes them."""

    display: ResultDisplay | None = None  # not in result files


_NAME_IS_LABEL = Rule(
    rule=f"self.metadata.name.matches('{OBJECT_NAME_PATTERN}')",
    message=f"metadata.name {FORMS[OBJECT_NAME_PATTERN]}",
)

_AGE = PrinterColumn("Age", ".metadata.creationTimestamp", type="date")

RUN = CustomResource(
    name=RUN_KIND,
    short_name="brun",
    description=(
        "A BenchmarkRun measures storage: it provisions the storage, generates load from many pods on many nodes at "
        "the same time, and records one BenchmarkResult for every combination of parameters."
    ),
    spec=RunSpec,
    status=BenchmarkRunStatus,
    initial_status={"observedGeneration": -1},
    columns=(
        PrinterColumn("Workloads", ".status.display.workloads"),
        PrinterColumn("Progress", ".status.display.progress"),
        PrinterColumn("Status", ".status.display.status"),
        PrinterColumn("IOPS", ".status.display.iops"),
        PrinterColumn("P99", ".status.display.p99"),
        PrinterColumn("Line", ".status.display.line"),
        PrinterColumn("Verdict", ".status.display.verdict"),
        _AGE,
        PrinterColumn("Clients", ".spec.clients.count", type="integer", wide=True),
        PrinterColumn("Repetitions", ".spec.repetitions", type="integer", wide=True),
        PrinterColumn("Started", ".status.startTime", type="date", wide=True),
        PrinterColumn("Estimated-End", ".status.estimatedCompletionTime", wide=True),
        PrinterColumn("Message", ".status.display.message", wide=True),
    ),
    rules=(
        Rule(
            rule="self.metadata.name.size() <= 63",
            message="metadata.name must have at most 63 characters, because other objects are named after the run",
        ),
        _NAME_IS_LABEL,
    ),
)

RESULT = CustomResource(
    name=RESULT_KIND,
    short_name="bres",
    description=(
        "A BenchmarkResult contains the numbers of one point of a BenchmarkRun, that is of one combination of "
        "parameters, over its trials. Plimsoll creates it in the namespace of the run. Its name is the name of the "
        "run, a hyphen and the name of the point."
    ),
    spec=ResultSpec,
    status=StoredResultStatus,
    columns=(
        PrinterColumn("Run", ".spec.run"),
        PrinterColumn("Point", ".spec.label"),
        PrinterColumn("Clients", ".spec.clients", type="integer"),
        PrinterColumn("Op", ".status.display.operation"),
        PrinterColumn("IOPS", ".status.display.iops"),
        PrinterColumn("P99", ".status.display.p99"),
        PrinterColumn("Line", ".status.display.line"),
        PrinterColumn("Trials", ".status.display.trials"),
        PrinterColumn("Verdict", ".status.verdict"),
        PrinterColumn("Reason", ".status.display.reason"),
        _AGE,
        PrinterColumn("Workload", ".spec.workload", wide=True),
        PrinterColumn("Tool", ".spec.tool", wide=True),
        PrinterColumn("Bytes/s", ".status.display.bytesPerSecond", wide=True),
        PrinterColumn("Final", ".status.final", type="boolean", wide=True),
    ),
    rules=(
        Rule(
            rule="self.metadata.name == self.spec.run + '-' + self.spec.point",
            message="metadata.name must be the name of the run, a hyphen and the name of the point",
        ),
    ),
)

SUITE = CustomResource(
    name=SUITE_KIND,
    short_name="bsuite",
    description=(
        "A BenchmarkSuite measures variants of one BenchmarkRun in turn, several times each, compares them with each "
        "other and with earlier rounds, and decides hypotheses."
    ),
    spec=SuiteSpec,
    status=BenchmarkSuiteStatus,
    initial_status={"observedGeneration": -1},
    columns=(
        PrinterColumn("Status", ".status.display.status"),
        PrinterColumn("Progress", ".status.display.progress"),
        PrinterColumn("Verdict", ".status.display.verdict"),
        PrinterColumn("Next", ".status.nextScheduleTime"),
        _AGE,
        PrinterColumn("Schedule", ".spec.schedule.cron", wide=True),
        PrinterColumn("Suspended", ".spec.suspend", type="boolean", wide=True),
        PrinterColumn("Ceph", ".status.cephVersion", wide=True),
        PrinterColumn("Message", ".status.display.message", wide=True),
    ),
    rules=(
        Rule(
            rule=f"self.metadata.name.size() <= {MAX_SUITE_NAME}",
            message=(
                f"metadata.name must have at most {MAX_SUITE_NAME} characters, because its runs are named after the "
                "suite"
            ),
        ),
        _NAME_IS_LABEL,
    ),
)

KINDS = (RUN, SUITE, RESULT)  # first those that users write
