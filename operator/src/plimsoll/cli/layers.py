"""`plimsoll layers RESULT`: a Ceph cluster from the bottom up, every layer read against the one below."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import click
from rich.text import Text

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.fitted import NONE, Column, FittedTable, stdout_console, text_of
from plimsoll.cli.output import CSV, JSON, TABLE, YAML, output_option, write_csv, write_document
from plimsoll.cli.source import load_results
from plimsoll.measure.limits import LAYER_OF_TOOL, Best, LayerRow, amplification, layers
from plimsoll.measure.rates import rate_text

_MEBIBYTE = 2**20
_QUANTITIES = ("bytes_per_second", "iops")

COLUMNS = (
    *("layer", "operation"),
    *(f"{name}{part}" for name in _QUANTITIES for part in ("", "_limit", "_efficiency", "_point")),
)
"""Of CSV, a row per layer and operation: bytes and operations per second, and parts of the limit."""


@click.command()
@click.argument("result")
@output_option(TABLE, JSON, YAML, CSV)
@cluster_options
def command(*, result: str, output: str) -> None:
    """Show what OSDs, RADOS and RBD do, what the layer below permits, and the ratio.

    RESULT is a results directory, a file of BenchmarkResult documents, or a run in a cluster (NAME or NAMESPACE/NAME),
    with osdBench, radosBench, and fio or rbdBench on RBD, of whichever there are.
    """
    found = load_results(result)
    if not any("ceph" in one.status.environment for one in found):
        tools = ", ".join(LAYER_OF_TOOL)
        message = f"{result} was not measured on a Ceph cluster that Plimsoll knows; measure one with {tools}"
        raise click.ClickException(message)
    copies = write_amplification(found)
    rows = layers(found, write_amplification=copies, network_rate=network_rate(found))
    if output == CSV:
        write_csv(COLUMNS, map(_row, rows))
        return
    if output != TABLE:
        write_document([_document(row) for row in rows], output)
        return
    console = stdout_console()
    console.print(_table(rows))
    for line in _explanations(rows, copies):
        console.print(Text(line), soft_wrap=True)


def write_amplification(results: Iterable[BenchmarkResult]) -> float | None:
    """Return how many bytes the pool writes for each of a client's, from the results' environment; None if unknown."""
    for result in results:
        pool = result.status.environment.get("pool")
        known = pool if isinstance(pool, dict) else {}
        size, data, coding = (known.get(name) for name in ("size", "dataChunks", "codingChunks"))
        if isinstance(size, int):
            return amplification(replicas=size)
        if isinstance(data, int) and isinstance(coding, int):
            return amplification(data_chunks=data, coding_chunks=coding)
    return None


def network_rate(results: Iterable[BenchmarkResult]) -> float | None:
    """Return what the network of one client carries, bytes per second, if the run's specification said so."""
    for result in results:
        fingerprint = result.status.fingerprint
        known = fingerprint.context.get("networkBytesPerSecond") if fingerprint else None
        if isinstance(known, int):
            return known
    return None


def _rate(best: Best | None) -> str:
    return NONE if best is None else f"{best.value / _MEBIBYTE:,.1f}"


def _limit(best: Best | None) -> str:
    return NONE if best is None or best.limit is None else f"{best.limit / _MEBIBYTE:,.1f}"


def _iops(best: Best | None) -> str:
    return NONE if best is None else rate_text(best.value, None)


def _iops_limit(best: Best | None) -> str:
    return NONE if best is None or best.limit is None else rate_text(best.limit, None)


def _percent(best: Best | None) -> str:
    return NONE if best is None or best.efficiency is None else f"{100 * best.efficiency:.0f} %"


_LAYER = Column[LayerRow](heading="Layer", cell=text_of(lambda row: row.layer))
_OPERATION = Column[LayerRow](heading="Op", cell=text_of(lambda row: row.operation))
_RATE = Column[LayerRow](heading="MiB/s", cell=text_of(lambda row: _rate(row.bytes_per_second)), right=True)
_RATE_LIMIT = Column[LayerRow](heading="Limit", cell=text_of(lambda row: _limit(row.bytes_per_second)), right=True)
_RATE_PART = Column[LayerRow](heading="Of it", cell=text_of(lambda row: _percent(row.bytes_per_second)), right=True)
_IOPS = Column[LayerRow](heading="IOPS", cell=text_of(lambda row: _iops(row.iops)), right=True)
_IOPS_LIMIT = Column[LayerRow](heading="Limit", cell=text_of(lambda row: _iops_limit(row.iops)), right=True)
_IOPS_PART = Column[LayerRow](heading="Of it", cell=text_of(lambda row: _percent(row.iops)), right=True)

_BYTES = (_LAYER, _OPERATION, _RATE, _RATE_LIMIT, _RATE_PART)
_LAYOUTS = ((*_BYTES, _IOPS, _IOPS_LIMIT, _IOPS_PART), _BYTES)


def _table(rows: Sequence[LayerRow]) -> FittedTable[LayerRow]:
    return FittedTable(rows=rows, layouts=_LAYOUTS, missed=_LAYOUTS[0], remedy="-o json")


def _explanations(rows: Sequence[LayerRow], copies: float | None) -> list[str]:
    lines = ["OSD is the sum of all OSDs, each measured alone. Rates are the best that may be believed."]
    if copies is None:
        lines.append("The pool's layout is not known, so the OSDs set no limit.")
    else:
        lines.append(f"For each byte of a client's the pool writes {copies:g}.")
    exceeded = [
        best for row in rows for best in (row.bytes_per_second, row.iops) if best and (best.efficiency or 0) > 1
    ]
    if exceeded:
        lines.append("More than 100 %: the layer below was not asked for its best, or a cache answered.")
    return lines


def _document(row: LayerRow) -> dict[str, object]:
    return {
        "layer": row.layer,
        "operation": row.operation,
        "bytesPerSecond": _best(row.bytes_per_second),
        "iops": _best(row.iops),
    }


def _best(best: Best | None) -> dict[str, object] | None:
    return None if best is None else {**asdict(best), "efficiency": best.efficiency}


def _row(row: LayerRow) -> dict[str, object]:
    found: dict[str, object] = {"layer": row.layer.value, "operation": row.operation.value}
    for name, best in zip(_QUANTITIES, (row.bytes_per_second, row.iops), strict=True):
        values = (None,) * 4 if best is None else (best.value, best.limit, best.efficiency, best.point)
        found |= dict(zip((name, f"{name}_limit", f"{name}_efficiency", f"{name}_point"), values, strict=True))
    return found
