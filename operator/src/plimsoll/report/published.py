"""A suite beside the study that it repeats: shares of limits, and ratios, with what both measured with."""

from collections.abc import Iterator, Sequence

from plimsoll.api.names import Verdict
from plimsoll.report.figure import colour
from plimsoll.report.text import NONE, bytes_rate_text, ratio_text
from plimsoll.report.view import Block, Cell, Chart, Json, Section, Table, Text
from plimsoll.studies.comparison import ComparedShare, OwnShare, StudyComparison
from plimsoll.studies.published import Origin

_PERCENT = 100
_ROW_PIXELS = 44
_MARGIN_PIXELS = 140
_WORDS = (
    "Rates of other hardware and versions say nothing about yours, so both sides are shares: of the limit that is "
    "computed from the layers below, or of another point. The study's line covers all that it published, yours is "
    "the 95 % confidence interval of a ratio. A derived share is computed from the study's numbers and not published "
    "itself, a cited one is quoted from others. * rests on Suspect points."
)


def published_section(compared: StudyComparison | None) -> Section | None:
    """Return a figure and a table; None without a study, or if the suite measures none of its shares."""
    if compared is None or not compared.shares:
        return None
    paragraphs = [_WORDS, *difference_texts(compared)]
    blocks: list[Block] = [Text(paragraphs=paragraphs), _chart(compared), _table(compared)]
    return Section(key="study", title=f"Beside {study_text(compared)}", blocks=blocks)


def study_text(compared: StudyComparison) -> str:
    """Return the study's key with its year: `KIT (2014)`."""
    year = compared.study.source.year
    return compared.study.key + (f" ({year})" if year else "")


def difference_texts(compared: StudyComparison) -> Iterator[str]:
    """Yield what the study measured with, and what the user did."""
    source = compared.study.source
    testbed = "; ".join(compared.study.testbed.values())
    yield f"{source.authors}, {source.title}, measured with {testbed}."
    own = "; ".join(compared.own_testbed)
    yield f"Yours: {own}." if own else "Yours: the results do not describe a cluster."


def published_text(share: ComparedShare) -> str:
    """Return the study's share in percent, both ends if it published several, and its origin if it did not: derived."""
    low, high = ratio_text(share.published.low), ratio_text(share.published.high)
    text = high if low == high else f"{low.removesuffix(' %')} to {high}"
    origin = share.published.origin
    return text if origin is Origin.PUBLISHED else f"{text} ({origin.lower()})"


def own_text(own: OwnShare) -> str:
    """Return the user's share in percent, with a * if it is Suspect."""
    return f"{ratio_text(own.value)}{' *' if own.is_suspect else ''}"


def own_rates_text(own: OwnShare) -> str:
    """Return the rates behind the user's share."""
    if own.limit is None:
        return NONE if own.rate is None else bytes_rate_text(own.rate)
    return f"{bytes_rate_text(own.rate)} of {bytes_rate_text(own.limit)}"


def remark_text(share: ComparedShare) -> str:
    """Return why there is no number, or else what differs."""
    return share.own.missing or share.note


def _table(compared: StudyComparison) -> Table:
    return Table(
        caption="Shares of the study and yours",
        headings=("Share", "Experiment", "Study", "Yours", "Study's numbers", "Your rates", "Remarks"),
        numbers=("Study", "Yours"),
        rows=[
            [
                Cell(text=one.name),
                Cell(text=one.experiment),
                Cell(text=published_text(one), sort=one.published.high),
                Cell(text=own_text(one.own), sort=one.own.value, mark=Verdict.SUSPECT if one.own.is_suspect else ""),
                Cell(text=f"{one.published.text} ({one.published.place})"),
                Cell(text=own_rates_text(one.own)),
                Cell(text=remark_text(one) or NONE),
            ]
            for one in compared.shares
        ],
    )


def _chart(compared: StudyComparison) -> Chart:
    shares, name = compared.shares, study_text(compared)
    words = "; ".join(f"{one.name}: study {published_text(one)}, yours {own_text(one.own)}" for one in shares)
    return Chart(
        key="study-shares",
        title=f"Shares of {name} and yours",
        description=f"{words}.",
        data=[_published_trace(compared), _own_trace(compared)],
        layout={
            "xaxis": {"title": {"text": "percent"}, "rangemode": "tozero"},
            "yaxis": {"type": "category", "autorange": "reversed", "automargin": True},
            "showlegend": True,
        },
        height=_MARGIN_PIXELS + _ROW_PIXELS * len(shares),
    )


def _published_trace(compared: StudyComparison) -> Json:
    """Return a marker for each share, in the middle of a line over what the study published."""
    shares = compared.shares
    middles = [_PERCENT * (one.published.low + one.published.high) / 2 for one in shares]
    halves = [_PERCENT * (one.published.high - one.published.low) / 2 for one in shares]
    texts = [f"{one.name}\n{published_text(one)}: {one.published.text}" for one in shares]
    return _trace(compared, middles, (halves, halves), texts) | {
        "name": study_text(compared),
        "marker": {"color": colour(1), "symbol": "diamond-open", "size": 18, "line": {"width": 2}},
    }


def _own_trace(compared: StudyComparison) -> Json:
    shares = compared.shares
    values = [None if one.own.value is None else _PERCENT * one.own.value for one in shares]
    above = [_length(one.own.value, one.own.high) for one in shares]
    below = [_length(one.own.low, one.own.value) for one in shares]
    texts = [f"{one.name}\n{own_text(one.own)}: {own_rates_text(one.own)}" for one in shares]
    symbols = ["circle-open-dot" if one.own.is_suspect else "circle" for one in shares]
    return _trace(compared, values, (above, below), texts) | {
        "name": "yours",
        "marker": {"color": colour(0), "symbol": symbols, "size": 11},
    }


def _length(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None else _PERCENT * (high - low)


def _trace(
    compared: StudyComparison,
    values: Sequence[float | None],
    lengths: tuple[Sequence[float], Sequence[float]],
    texts: Sequence[str],
) -> Json:
    """Return markers with lines of these lengths above and below them, in percent."""
    above, below = lengths
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [*values],
        "y": [one.name for one in compared.shares],
        "error_x": {"type": "data", "symmetric": False, "array": [*above], "arrayminus": [*below], "width": 5},
        "text": [*texts],
        "hovertemplate": "%{text}<extra></extra>",
    }
