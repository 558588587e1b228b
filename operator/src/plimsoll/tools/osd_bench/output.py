"""What `ceph tell osd.* bench --format=json` prints -> a measurement.

One line for each OSD, in order: `osd.0: {"bytes_written": …}`. An OSD that fails has no line, and the command goes on
with the next one; what it said is on standard error, where only some messages name the OSD.
"""

import json
import re
from collections.abc import Iterator, Sequence

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.sample import LatencySample, Measurement, OperationSample, OsdRate
from plimsoll.tools.base import Output, OutputError
from plimsoll.tools.osd_bench.parameters import OsdBenchParameters
from plimsoll.tools.reading import Node, bounded, lines, shown, whole_lines

_LINE = re.compile(r"osd\.(?P<number>\d{1,9}): (?P<document>\{.*\})", re.ASCII)
_FIELDS = frozenset({"bytes_written", "blocksize", "elapsed_sec", "bytes_per_sec", "iops"})
_SECOND = 10**9
_ROUNDING = 1e-6


def parse_measurement(parameters: OsdBenchParameters, output: Output) -> Measurement:
    """Read the output of a measurement; its runtime is the time that all OSDs took, one after the other.

    When each of them began is not told, nor needed, as no two clients measure together: the start is the command's own.

    Raises:
        OutputError: no OSD was measured, or a field is missing or contradicts another.

    """
    nodes, unknown = _sorted(output.stdout)
    said = lines(output.stderr)
    if not nodes:
        raise OutputError(
            f"no OSD was measured (exit code {output.exit_code}): {'; '.join(dict.fromkeys(said)) or 'no message'}"
        )
    rates = [_rate(parameters, number, node) for number, node in sorted(nodes.items())]
    warnings = [*unknown, *(f"unknown field: {name}" for node in nodes.values() for name in node.unknown(_FIELDS))]
    return Measurement(
        tool="osdBench",
        tool_version="",
        started_at=output.launched_at,
        runtime=round(sum(rate.seconds for rate in rates) * _SECOND),
        operations=(_sum(rates),),
        osds=tuple(rates),
        errors=bounded([*(_failures(output, said) if output.exit_code else ()), *_incomplete(parameters, rates)]),
        warnings=bounded(warnings if output.exit_code else [*warnings, *said]),
    )


def _sorted(text: str) -> tuple[dict[int, Node], list[str]]:
    """Return number of the OSD -> what was printed for it, and what is wrong with all other lines."""
    nodes: dict[int, Node] = {}
    unknown = []
    for line in whole_lines(text):
        match = _LINE.fullmatch(line)
        if match is None:
            unknown.append(f"unknown line: {shown(line)}")
            continue
        number = int(match["number"])
        if number in nodes:
            raise OutputError(f"osd.{number} stands there twice")
        nodes[number] = Node(path=f"osd.{number}", fields=_decoded(number, match["document"]))
    return nodes, unknown


def _decoded(number: int, text: str) -> dict[str, object]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"osd.{number} has no JSON document: {type(error).__name__}") from error
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise OutputError(f"osd.{number} has a field twice")
    return fields


def _rate(parameters: OsdBenchParameters, number: int, node: Node) -> OsdRate:
    """Return what one OSD did, of which three numbers are told and two follow from them."""
    size, block, seconds = node.count("bytes_written"), node.count("blocksize"), node.number("elapsed_sec")
    if block != parameters.block_size:
        raise OutputError(f"osd.{number} wrote blocks of {block} bytes, but {parameters.block_size} was asked for")
    if not seconds:
        raise OutputError(f"osd.{number}.elapsed_sec is 0")
    for name, expected in (("bytes_per_sec", size / seconds), ("iops", size / seconds / block)):
        if abs(node.number(name) - expected) > _ROUNDING * expected:
            raise OutputError(f"osd.{number}.{name} contradicts bytes_written, blocksize and elapsed_sec")
    return OsdRate(osd=number, ios=size // block, bytes=size, seconds=seconds)


def _sum(rates: Sequence[OsdRate]) -> OperationSample:
    return OperationSample(
        operation=Operation.WRITE,
        ios=sum(rate.ios for rate in rates),
        bytes=sum(rate.bytes for rate in rates),
        latency=LatencySample(kind=LatencyKind.NONE),
    )


def _failures(output: Output, said: Sequence[str]) -> list[str]:
    return list(said) or [f"ceph tell ended with exit code {output.exit_code}"]


def _incomplete(parameters: OsdBenchParameters, rates: Sequence[OsdRate]) -> Iterator[str]:
    for rate in rates:
        if rate.bytes != parameters.total_bytes:
            yield f"osd.{rate.osd} wrote {rate.bytes} of {parameters.total_bytes} bytes"
