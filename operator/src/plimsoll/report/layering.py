"""What each layer of a Ceph cluster gives, against what the layer below permits."""

from collections.abc import Iterator, Sequence

from plimsoll.api.names import Verdict
from plimsoll.measure.limits import Best, LayerRow
from plimsoll.measure.rates import rate_text
from plimsoll.report.figure import MEBIBYTE, NONE, colour, linear_axis
from plimsoll.report.points import verdict_text
from plimsoll.report.runs import Run
from plimsoll.report.view import Block, Cell, Chart, Column, Section, Table, Text

_WORDS = (
    "OSD is the sum of all OSDs, each measured alone. A layer's limit is what the layer below gives, for writes "
    "divided by the copies that the pool keeps, and never more than the clients' network carries if that is known. "
    "Rates are the best that may be believed; a * stands beside one that is Suspect. More than 100 % means that "
    "the layer below was not asked for its best, or that a cache answered."
)


def layers_section(runs: Sequence[Run]) -> Section | None:
    """Return the layers of the runs that have at least two; None if none has."""
    found = [run for run in runs if len({row.layer for row in run.layers}) > 1]
    if not found:
        return None
    blocks = [block for number, run in enumerate(found) for block in _blocks(number, run, several=len(runs) > 1)]
    words = [_WORDS]
    return Section(key="layers", title="Layers", blocks=[Text(paragraphs=words), *blocks])


def _blocks(number: int, run: Run, *, several: bool) -> Iterator[Block]:
    name = f", {run.label}" if several else ""
    copies = run.write_amplification
    yield Text(
        paragraphs=[
            "The pool's layout is not known, so the OSDs set no limit."
            if copies is None
            else f"For each byte of a client's the pool writes {copies:g}."
        ]
    )
    table = _table(run)
    volumes = [(row, row.bytes_per_second) for row in run.layers]
    yield _chart(run, f"layers-bytes-{number}", f"Throughput by layer{name}", "MiB per second", volumes, MEBIBYTE)
    yield _chart(run, f"layers-iops-{number}", f"IOPS by layer{name}", "operations per second", _iops(run), 1)
    yield table


def _iops(run: Run) -> list[tuple[LayerRow, Best | None]]:
    return [(row, row.iops) for row in run.layers]


def _chart(
    run: Run, key: str, title: str, axis: str, rows: Sequence[tuple[LayerRow, Best | None]], scale: float
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
                "name": "limit by the layer below",
                "x": [name for name, _ in limited],
                "y": [limit for _, limit in limited],
                "marker": {"color": colour(1), "symbol": "line-ew-open", "size": 42, "line": {"width": 3}},
                "hovertemplate": "limit %{y:,.1f}<extra></extra>",
            },
        ],
        layout={"xaxis": {"type": "category"}, "yaxis": linear_axis(axis), "showlegend": True},
    )


def _words(name: str, best: Best, scale: float, axis: str) -> str:
    part = "" if best.efficiency is None else f", {100 * best.efficiency:.0f} % of its limit"
    return f"{name} {rate_text(best.value / scale)} {axis}{part}"


def _mark(run: Run, best: Best) -> str:
    """Return the mark of a number that is not Valid."""
    return "" if _verdict(run, best) == Verdict.VALID else " *"


def _verdict(run: Run, best: Best) -> str:
    return next((verdict_text(one) for one in run.results if one.spec.point == best.point), "")


def _table(run: Run) -> Table:
    quantity = ("Limit", "Of it", "At", "Verdict")
    return Table(
        caption="Best rates of each layer",
        columns=[
            Column(heading="Layer"),
            Column(heading="Op"),
            *(Column(heading=heading, number=True) for heading in ("MiB/s", *quantity[:2])),
            *(Column(heading=heading) for heading in quantity[2:]),
            *(Column(heading=heading, number=True) for heading in ("IOPS", *quantity[:2])),
            *(Column(heading=heading) for heading in quantity[2:]),
        ],
        rows=[
            [
                Cell(text=row.layer),
                Cell(text=row.operation),
                *_cells(run, row.bytes_per_second, MEBIBYTE),
                *_cells(run, row.iops, 1),
            ]
            for row in run.layers
        ],
    )


def _cells(run: Run, best: Best | None, scale: float) -> list[Cell]:
    """Return rate, limit, ratio, point and verdict."""
    if best is None:
        return [Cell(text=NONE)] * 5
    verdict = _verdict(run, best)
    return [
        Cell(text=rate_text(best.value / scale), sort=best.value),
        Cell(text=NONE if best.limit is None else rate_text(best.limit / scale), sort=best.limit),
        Cell(text=NONE if best.efficiency is None else f"{100 * best.efficiency:.0f} %", sort=best.efficiency),
        Cell(text=best.point),
        Cell(text=verdict, mark=verdict),
    ]
