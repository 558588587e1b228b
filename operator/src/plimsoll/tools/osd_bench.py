"""`ceph tell osd.* bench`: the speed of each OSD's store alone, without network, replication or clients."""

import re
from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.api.json_reader import JsonNode, OutputError
from plimsoll.api.model import Rule, ServerOnly, Size
from plimsoll.api.names import Layer, Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.storage import KeyringReference
from plimsoll.measure.sample import Measurement, OperationSample, OsdRate
from plimsoll.tools.base import Command, Output, StepContext, Tool, ToolParameters
from plimsoll.tools.reading import SECOND, UNTIMED, bounded, excerpt, failure, sort_lines
from plimsoll.tools.target import OsdsTarget, TargetKind


class OsdBenchParameters(ToolParameters):
    """ceph tell osd.N bench, one OSD after the other: the speed of a disk with its OSD alone.

    Needs a Ceph administrator's key, and the administrator's permission.
    """

    axes: ClassVar[frozenset[str]] = frozenset({"blockSize"})
    size_axis: ClassVar[str] = "blockSize"
    credentials: ClassVar[frozenset[str]] = frozenset({"user", "keyringSecret"})
    run_rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule=(
                "self.workloads.all(w, !has(w.osdBench) || self.workloads.all(other, !has(other.osdBench) || "
                "other.osdBench.keyringSecret == w.osdBench.keyringSecret))"
            ),
            holds=lambda run: len({point.parameters.keyring_secret for point in run.points_of("osdBench")}) <= 1,
            message="must name the same keyringSecret in every osdBench; split the run, or put one Secret in all",
            field_path=".workloads",
        ),
    )

    block_size: Annotated[
        Size,
        Field(
            ge=4096,
            # Ceph's own limit (`osd_bench_max_block_size`).
            le=64 * 2**20,
            multiple_of=512,
            description="A number of bytes such as 4096, or a quantity such as 4Ki or 4Mi.",
        ),
        ServerOnly(pattern=r"^(([4-9]|[1-9][0-9]{1,3})Ki|([1-9]|[1-5][0-9]|6[0-4])Mi)$"),
    ] = 4 * 2**20
    """Axis: bytes of every write, from 4Ki to 64Mi, a multiple of 512."""
    total_size: (
        Annotated[
            Size,
            Field(ge=4096, le=16 * 2**30),
            ServerOnly(pattern=r"^(([4-9]|[1-9][0-9]{1,3})Ki|[1-9][0-9]{0,3}Mi|([1-9]|1[0-6])Gi)$"),
        ]
        | None
    ) = None
    """Bytes that each OSD writes, from 4Ki to 16Gi, at least one block. Write a number of bytes, or whole Ki or Mi (at
    most 9999) or Gi. If absent, 1Gi; for blocks below 1Mi at most 3000 blocks, which is Ceph's default limit."""
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9][-._A-Za-z0-9]*$", max_length=253)] = "admin"
    """Name of the keyring's CephX user, without "client."."""
    keyring_secret: KeyringReference
    """Secret in the run's namespace with the keyring of that user, the same in all workloads of the run."""

    @field_validator("total_size")
    @classmethod
    def _check_holds_one_block(cls, value: int | None, info: ValidationInfo) -> int | None:
        block = info.data.get("block_size")
        if value is not None and block is not None and value < block:
            raise ValueError(f"is less than one block of {format_quantity(block)}; use more, or a smaller blockSize")
        return value

    @property
    def total_bytes(self) -> int:
        """Bytes that each OSD writes: a whole number of blocks."""
        # Ceph's limit for small blocks is `osd_bench_small_size_max_iops` times `osd_bench_duration`.
        default = min(100 * 30 * self.block_size, 2**30) if self.is_small else 2**30
        return (self.total_size or default) // self.block_size * self.block_size

    @property
    def administrator_keyring(self) -> KeyringReference:
        return self.keyring_secret

    @property
    def is_small(self) -> bool:
        """Whether Ceph limits the number of such blocks."""
        return self.block_size < 2**20

    def label(self) -> str:
        return f"osd write {format_quantity(self.block_size)}, {format_quantity(self.total_bytes)} each"


_LINE = re.compile(r"osd\.(?P<number>\d{1,9}): (?P<document>\{.*\})", re.ASCII)


class OsdBench(Tool[OsdBenchParameters]):
    """One command of one client; the OSDs run one after the other, and remove their data."""

    key: ClassVar[str] = "osdBench"
    program: ClassVar[str] = "ceph"
    parameters = OsdBenchParameters
    layer: ClassVar[Layer] = Layer.OSD
    target: ClassVar[TargetKind] = TargetKind.OSDS
    runs_alone: ClassVar[bool] = True
    windowed: ClassVar[bool] = False
    least_runtime_seconds: ClassVar[int] = 1

    def command(self, parameters: OsdBenchParameters, context: StepContext) -> Command:
        """Return the command; small blocks are written in a hundred prepared objects, as Ceph does to rate an OSD."""
        access = (f"--id={parameters.user}", f"--keyring={context.target_of(OsdsTarget).keyring}")
        bench = ("bench", str(parameters.total_bytes), str(parameters.block_size))
        objects = (str(4 * 2**20), "100") if parameters.is_small else ()
        options = ("--connect-timeout=30", "--format=json")
        return Command(argv=("ceph", *access, *options, "tell", "osd.*", *bench, *objects))

    def parse(self, parameters: OsdBenchParameters, context: StepContext, output: Output) -> Measurement:
        """Read the OSDs' documents, without start times: no two clients measure at the same time."""
        (lines,), warnings = sort_lines(output.stdout, _LINE)
        rates: dict[int, OsdRate] = {}
        for line in lines:
            number = int(line["number"])
            if number in rates:
                raise OutputError(f"osd.{number} occurs twice")
            rates[number] = _rate(number, JsonNode.parse(line["document"], path=f"osd.{number}"), parameters)
        if not rates:
            raise OutputError(f"no OSD was measured, {failure(output)}")
        messages, total = excerpt(output.stderr), parameters.total_bytes
        incomplete = [
            f"osd.{osd} wrote {rate.bytes} of {total} bytes" for osd, rate in rates.items() if rate.bytes != total
        ]
        errors = messages or [f"ceph tell ended with exit code {output.exit_code}"]
        sample = OperationSample(
            operation=Operation.WRITE,
            ios=sum(rate.ios for rate in rates.values()),
            bytes=sum(rate.bytes for rate in rates.values()),
            latency=UNTIMED,
        )
        return Measurement(
            started_at=output.launched_at,
            runtime=round(sum(rate.seconds for rate in rates.values()) * SECOND),
            operations=(sample,),
            osds=tuple(rates[number] for number in sorted(rates)),
            errors=bounded([*(errors if output.exit_code else ()), *incomplete]),
            warnings=bounded(warnings if output.exit_code else [*warnings, *messages]),
        )


def _rate(number: int, document: JsonNode, parameters: OsdBenchParameters) -> OsdRate:
    # Crimson's OSDs put the fields into an object of their own.
    inner = [field for _, field in document.items() if isinstance(field.value, dict) and "bytes_written" in field]
    osd = inner[0] if len(inner) == 1 and "bytes_written" not in document else document
    size, block, seconds = osd["bytes_written"].count(), osd["blocksize"].count(), osd["elapsed_sec"].number()
    if block != parameters.block_size:
        raise OutputError(f"osd.{number} wrote blocks of {block} bytes instead of {parameters.block_size}")
    if not seconds:
        raise OutputError(f"osd.{number}.elapsed_sec is 0")
    # The printed rate, if there is one, shows whether bytes and seconds are what they seem.
    rate = osd.number_or_none("bytes_per_sec")
    if rate is not None and abs(rate - size / seconds) > 1e-6 * size / seconds:
        raise OutputError(f"osd.{number}.bytes_per_sec contradicts bytes_written and elapsed_sec")
    return OsdRate(osd=number, ios=size // block, bytes=size, seconds=seconds)
