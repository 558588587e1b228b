"""The output of `ceph tell osd.* bench --format=json` -> a measurement.

It has one line per OSD, in order: `osd.0: {"bytes_written": …}`. An OSD that fails has no line, and the command
continues with the next one; the error is on standard error, where only some messages name the OSD.
"""

import json
import re
from collections.abc import Iterator, Sequence

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.sample import LatencySample, Measurement, OperationSample, OsdRate
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.osd_bench.parameters import OsdBenchParameters
from plimsoll.tools.reading import JsonObject, bounded, complete_lines, excerpt, failure, printable

_LINE = re.compile(r"osd\.(?P<number>\d{1,9}): (?P<document>\{.*\})", re.ASCII)
_FIELDS = frozenset({"bytes_written", "blocksize", "elapsed_sec", "bytes_per_sec", "iops"})
_SECOND = 10**9
_ROUNDING = 1e-6


def parse_measurement(parameters: OsdBenchParameters, output: Output) -> Measurement:
    """Read the output of a measurement; its runtime is the total time of all OSDs, one after the other.

    The output has no start times. None are needed, because no two clients measure at the same time.

    Raises:
        OutputError: no OSD was measured, or a field is missing or contradicts another.

    """
    osds, unknown = _osds(output.stdout)
    if not osds:
        raise OutputError(f"no OSD was measured, {failure(output)}")
    messages = excerpt(output.stderr)
    rates = [_rate(parameters, number, osd) for number, osd in sorted(osds.items())]
    errors = messages or [f"ceph tell ended with exit code {output.exit_code}"]
    warnings = [*unknown, *(f"unknown field: {name}" for osd in osds.values() for name in osd.unknown(_FIELDS))]
    return Measurement(
        tool="osdBench",
        tool_version="",
        started_at=output.launched_at,
        runtime=round(sum(rate.seconds for rate in rates) * _SECOND),
        operations=(_sum(rates),),
        osds=tuple(rates),
        errors=bounded([*(errors if output.exit_code else ()), *_incomplete(parameters, rates)]),
        warnings=bounded(warnings if output.exit_code else [*warnings, *messages]),
    )


def _osds(text: str) -> tuple[dict[int, JsonObject], list[str]]:
    """Return number of the OSD -> its document, and warnings about all other lines."""
    osds: dict[int, JsonObject] = {}
    unknown = []
    for line in complete_lines(text):
        match = _LINE.fullmatch(line)
        if match is None:
            unknown.append(f"unknown line: {printable(line)}")
            continue
        number = int(match["number"])
        if number in osds:
            raise OutputError(f"osd.{number} occurs twice")
        osds[number] = JsonObject(path=f"osd.{number}", fields=_decoded(number, match["document"]))
    return osds, unknown


def _decoded(number: int, text: str) -> dict[str, object]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"osd.{number} has no JSON document: {type(error).__name__}") from error
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise OutputError(f"osd.{number} has a field twice")
    return fields


def _rate(parameters: OsdBenchParameters, number: int, osd: JsonObject) -> OsdRate:
    """Return one OSD's rate; two of its five numbers follow from the others, and are checked."""
    size, block, seconds = osd.count("bytes_written"), osd.count("blocksize"), osd.number("elapsed_sec")
    if block != parameters.block_size:
        raise OutputError(f"osd.{number} wrote blocks of {block} bytes instead of {parameters.block_size}")
    if not seconds:
        raise OutputError(f"osd.{number}.elapsed_sec is 0")
    for name, expected in (("bytes_per_sec", size / seconds), ("iops", size / seconds / block)):
        if abs(osd.number(name) - expected) > _ROUNDING * expected:
            raise OutputError(f"osd.{number}.{name} contradicts bytes_written, blocksize and elapsed_sec")
    return OsdRate(osd=number, ios=size // block, bytes=size, seconds=seconds)


def _sum(rates: Sequence[OsdRate]) -> OperationSample:
    return OperationSample(
        operation=Operation.WRITE,
        ios=sum(rate.ios for rate in rates),
        bytes=sum(rate.bytes for rate in rates),
        latency=LatencySample(kind=LatencyKind.NONE),
    )


def _incomplete(parameters: OsdBenchParameters, rates: Sequence[OsdRate]) -> Iterator[str]:
    for rate in rates:
        if rate.bytes != parameters.total_bytes:
            yield f"osd.{rate.osd} wrote {rate.bytes} of {parameters.total_bytes} bytes"
