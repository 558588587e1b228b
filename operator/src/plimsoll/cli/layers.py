"""`plimsoll layers RESULT`: a Ceph cluster from the bottom up, each layer compared with the one below."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import click
from rich.text import Text

from plimsoll.api.environment import StorageClassDescription
from plimsoll.api.names import Layer
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.cluster import cluster_options, program
from plimsoll.cli.options import CSV, TABLE, document_of, output_option, write_csv, write_document
from plimsoll.cli.source import load_results
from plimsoll.cli.tables import Terminal, fitted, print_line
from plimsoll.conductor.roster import MAX_FACTS
from plimsoll.measure.layers import TOO_HIGH, Best, LayerRow, layers, osd_count, too_high
from plimsoll.measure.text import first_few
from plimsoll.report.figure import ReportedRun
from plimsoll.report.layers_links import LAYER_COLUMNS, is_marked
from plimsoll.report.view import layer_sentences
from plimsoll.tools.registry import LAYERS, TOOLS


@click.command(short_help="Compare the rate of each layer with its limit.")
@click.argument("result")
@click.option(
    "--device-run",
    help="A run on block devices like the OSDs' devices, one client on each, as the lowest layer; named like RESULT.",
)
@output_option
@cluster_options
def command(*, result: str, device_run: str | None, output: str) -> None:
    """Show the rates of network, OSDs, RADOS, RBD and file systems, the limit that layers below set, and their ratio.

    RESULT is a results directory, a file of BenchmarkResult documents, or a run in a cluster (NAME or NAMESPACE/NAME)
    with any of the tools for networks, for OSDs and pools, and for volumes in Ceph.
    """
    results = load_results(result)
    if all(each.status.environment.ceph is None for each in results):
        tools = ", ".join(LAYERS)
        raise click.ClickException(f"{result} has no information about a Ceph cluster; measure one with {tools}")
    devices = load_results(device_run) if device_run else []
    for device in devices:
        if problem := device_problem(device):
            raise click.ClickException(f"--device-run {device_run}: point {device.spec.point} {problem}")
    rows = layers_of(results, devices)
    if output == CSV:
        write_csv(LAYER_COLUMNS, rows)
        return
    if output != TABLE:
        documents = [
            {
                **document_of(row, "layer", "operation"),
                "bytesPerSecond": _best(row.bytes_per_second),
                "iops": _best(row.iops),
            }
            for row in rows
        ]
        write_document(documents, output)
        return
    console = Terminal()
    console.print(fitted(LAYER_COLUMNS, rows, remedy="-o json"))
    if any(map(is_marked, rows)):
        console.print(Text(f"* its point is Suspect or not finished; {program()} results shows why", style="dim"))
    for line in (*layer_sentences(rows), *layer_notes(rows, results, devices)):
        print_line(console, line)


def layers_of(results: Sequence[BenchmarkResult], devices: Sequence[BenchmarkResult] = ()) -> tuple[LayerRow, ...]:
    """Return the layers of one run, with what their tools and the run's specification tell about its network."""
    return layers(
        results,
        LAYERS,
        write_amplification=write_amplification(results),
        network_rate=network_rate(results),
        devices=devices,
        at_once=_clients_at_once,
    )


def _clients_at_once(result: BenchmarkResult) -> int:
    spec, tool = result.spec, TOOLS[result.spec.tool]
    return tool.cast_size(tool.parameters.model_validate(spec.parameters), spec.clients, 0).loading


def with_layers(run: ReportedRun, results: Sequence[BenchmarkResult]) -> ReportedRun:
    if all(result.status.environment.ceph is None for result in results):
        return run
    rows = layers_of(results)
    return replace(run, layers=rows, layer_notes=[*layer_notes(rows, results)])


def device_problem(result: BenchmarkResult) -> str | None:
    environment, clients = result.status.environment, result.spec.clients
    names = environment.volume_device or ()
    devices = names if isinstance(names, tuple) else (names,)
    storage_class = environment.storage_class
    driver = storage_class.provisioner or "" if isinstance(storage_class, StorageClassDescription) else ""
    # As far as the devices or the driver show it.
    is_of_ceph = driver.endswith(".csi.ceph.com") or any(name.startswith(("rbd", "nbd")) for name in devices)
    if not devices or environment.ceph is not None or is_of_ceph:
        remedy = "name a run with volume.mode Block and a StorageClass of whole devices, or of `plimsoll run --device`"
        return f"was not measured on block devices outside Ceph; {remedy}"
    # Of many names only some are kept.
    if len(devices) < MAX_FACTS and clients > len(devices) * (environment.node_count or 1):
        return f"has {clients} clients, some on the same device; measure one client per device"
    return None


def write_amplification(results: Iterable[BenchmarkResult]) -> float | None:
    """Return the bytes that the pool writes per byte of a client, from the results' environment; None if unknown."""
    for result in results:
        pool = result.status.environment.pool
        if pool is not None and pool.size is not None:
            return float(pool.size)
        if pool is not None and pool.data_chunks and pool.coding_chunks is not None:
            return (pool.data_chunks + pool.coding_chunks) / pool.data_chunks
    return None


def network_rate(results: Iterable[BenchmarkResult]) -> float | None:
    """Return the bytes per second that the network of one client carries, if the run's specification has it."""
    for result in results:
        fingerprint = result.status.fingerprint
        rate = fingerprint.context.get("networkBytesPerSecond") if fingerprint else None
        if isinstance(rate, int):
            return rate
    return None


def layer_notes(
    rows: Sequence[LayerRow], results: Sequence[BenchmarkResult], devices: Sequence[BenchmarkResult] = ()
) -> Iterator[str]:
    """Yield what the rates and limits of layers are, and which points they leave out."""
    yield "OSD is the sum of all OSDs, each measured alone. Rates are the best ones that are not Invalid."
    measured = {row.layer for row in rows}
    if Layer.NETWORK in measured:
        yield (
            "Network is the total rate of all clients that send at the same time; the rate of each client limits it "
            "in the layers above. Unless one tool measured both directions, the best rate counts for both."
        )
    osds, copies = osd_count(results), write_amplification(results)
    if Layer.DEVICE in measured and osds is None:
        yield "The number of OSDs is unknown: Device is the sum of the measured devices, which set no limit."
    elif Layer.DEVICE in measured:
        yield f"Device is the mean rate of one device, times {osds} for the OSDs."
    if copies is None:
        yield "The pool's layout is unknown, so neither OSDs nor devices set a limit for writes."
    else:
        yield f"The pool writes {copies:g} bytes per byte of a client."
    if any((best.efficiency or 0) > 1 for row in rows for best in (row.bytes_per_second, row.iops) if best):
        yield "More than 100 %: the layer below was not fully loaded, or a cache answered."
    if points := [*too_high(results), *too_high(devices)]:
        yield f"Left out, because their rates may be too high ({' or '.join(TOO_HIGH)}): {first_few(points, 8)}."
    if searches := [result.spec.point for result in (*results, *devices) if result.spec.line is not None]:
        yield f"Left out, because a search for the line has no rate of its own: {first_few(searches, 8)}."


def _best(best: Best | None) -> dict[str, object] | None:
    return None if best is None else document_of(best, "value", "limit", "limited_by", "efficiency", "point", "verdict")
