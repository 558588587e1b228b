"""The rates of each layer of a Ceph cluster, compared with the limit that the layer below sets."""

from collections.abc import Iterator, Sequence

from plimsoll.api.names import Verdict
from plimsoll.measure.limits import TOO_HIGH, Best, LayerRow
from plimsoll.measure.rates import rate_text
from plimsoll.report.figure import colour, linear_axis
from plimsoll.report.points import verdict_text
from plimsoll.report.runs import ReportedRun
from plimsoll.report.text import MEBIBYTE, NONE, layer_sentences, limiting_text, ratio_text
from plimsoll.report.view import Block, Cell, Chart, Section, Table, Text

_WORDS = (
    "OSD is the sum of all OSDs, each measured alone. The limit of a layer is the rate of the layer below, for writes "
    "divided by the copies that the pool keeps, and at most what the clients' network carries, as measured or as "
    "specified, if that is known; unless one tool measured both directions, the best rate counts for both. "
    "Rates are the best ones that are not Invalid; a * marks Suspect ones. Points whose rates may be too high "
    f"({' or '.join(TOO_HIGH)}) are left out. More than 100 % means that the layer below was not fully loaded, or that "
    "a cache answered."
)


def layers_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the layers of the runs with at least two layers; None without such a run."""
    found = [run for run in runs if len({row.layer for row in run.layers}) > 1]
    if not found:
        return None
    blocks = [block for number, run in enumerate(found) for block in _blocks(number, run, several=len(runs) > 1)]
    return Section(key="layers", title="Layers", blocks=[Text(paragraphs=[_WORDS]), *blocks])


def _blocks(number: int, run: ReportedRun, *, several: bool) -> Iterator[Block]:
    name = f", {run.label}" if several else ""
    copies = run.write_amplification
    yield Text(
        paragraphs=[
            "The pool's layout is unknown, so the OSDs set no limit."
            if copies is None
            else f"The pool writes {copies:g} bytes per byte of a client.",
            *layer_sentences(run.layers),
        ]
    )
    volumes = [(row, row.bytes_per_second) for row in run.layers]
    operations = [(row, row.iops) for row in run.layers]
    yield _chart(run, f"layers-bytes-{number}", f"Throughput by layer{name}", "MiB per second", volumes, MEBIBYTE)
    yield _chart(run, f"layers-iops-{number}", f"IOPS by layer{name}", "operations per second", operations, 1)
    yield _table(run)


def _chart(
    run: ReportedRun, key: str, title: str, axis: str, rows: Sequence[tuple[LayerRow, Best | None]], scale: float
) -> Chart:
    known = [(f"{row.layer} {row.operation}", best) for row, best in rows if best]
    limited = [(name, best.limit / scale) for name, best in known if best.limit is not None]
    texts = [f"{rate_text(best.value / scale)}{_mark(run, best)}" for _, best in known]
    return Chart(
        key=key,
        title=title,
        description=f"{title}: {'; '.join(_words(name, best, scale, axis) for name, best in known)}.",
        data=[
            {
                "type": "bar",
                "name": "measured",
                "x": [name for name, _ in known],
                "y": [best.value / scale for _, best in known],
                "text": texts,
                "textposition": "auto",
                "marker": {"color": colour(0)},
                "hovertext": [f"{name}\n{_words(best.point, best, scale, axis)}" for name, best in known],
                "hovertemplate": "%{hovertext}<extra></extra>",
            },
            {
                "type": "scatter",
                "mode": "markers",
                "name": "limit",
                "x": [name for name, _ in limited],
                "y": [limit for _, limit in limited],
                "marker": {"color": colour(1), "symbol": "line-ew-open", "size": 42, "line": {"width": 3}},
                "hovertemplate": "limit %{y:,.1f}<extra></extra>",
            },
        ],
        layout={"xaxis": {"type": "category"}, "yaxis": linear_axis(axis), "showlegend": True},
    )


def _words(name: str, best: Best, scale: float, axis: str) -> str:
    part = "" if best.efficiency is None else f", {ratio_text(best.efficiency)} of its limit"
    return f"{name} {rate_text(best.value / scale)} {axis}{part}"


def _mark(run: ReportedRun, best: Best) -> str:
    """Return a * for a number that is not Valid."""
    return "" if _verdict(run, best) == Verdict.VALID else " *"


def _verdict(run: ReportedRun, best: Best) -> str:
    return next((verdict_text(one) for one in run.results if one.spec.point == best.point), "")


def _table(run: ReportedRun) -> Table:
    quantity = ("Limit", "Set by", "Of limit", "At", "Verdict")
    return Table(
        caption="Best rates of each layer",
        headings=("Layer", "Op", "MiB/s", *quantity, "IOPS", *quantity),
        numbers=("MiB/s", "IOPS", "Limit", "Of limit"),
        rows=[
            [
                Cell(text=row.layer),
                Cell(text=row.operation),
                *_cells(run, row, row.bytes_per_second, MEBIBYTE),
                *_cells(run, row, row.iops, 1),
            ]
            for row in run.layers
        ],
    )


def _cells(run: ReportedRun, row: LayerRow, best: Best | None, scale: float) -> list[Cell]:
    """Return rate, limit, what sets it, ratio, point and verdict."""
    if best is None:
        return [Cell(text=NONE)] * 6
    verdict = _verdict(run, best)
    return [
        Cell(text=rate_text(best.value / scale), sort=best.value),
        Cell(text=NONE if best.limit is None else rate_text(best.limit / scale), sort=best.limit),
        Cell(text=limiting_text(row.layer, best)),
        Cell(text=ratio_text(best.efficiency), sort=best.efficiency),
        Cell(text=best.point),
        Cell(text=verdict, mark=verdict),
    ]
