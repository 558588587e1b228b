"""Putting figures into words: medians with their ranges, in plain tables."""

import statistics
from collections.abc import Callable, Iterator, Sequence

Row = Sequence[str]


def plain(digits: int) -> Callable[[float], str]:
    """Return how to write a number with that many decimals."""
    return lambda value: f"{value:.{digits}f}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def whole_seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"


def mebibytes(size: float) -> str:
    return f"{size / 2**20:.1f} MiB"


def percent(share: float, digits: int = 1) -> str:
    """Return a part of 1 as a percentage with that many decimals."""
    return f"{100 * share:.{digits}f} %"


def heading_rows(*names: str) -> Iterator[Row]:
    """Yield the two rows that begin a table in Markdown."""
    yield names
    yield ["---"] * len(names)


def median_and_range(values: Sequence[float], write: Callable[[float], str]) -> tuple[str, str]:
    """Return the median, and the least and the greatest value."""
    if not values:
        return "-", "-"
    return write(statistics.median(values)), f"{write(min(values))} to {write(max(values))}"


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, round(share * len(ordered)) - 1))]


def heading(title: str, meaning: str) -> None:
    print(f"\n== {title}\n   {meaning}\n", flush=True)


def table(names: Row, rows: Sequence[Row]) -> None:
    """Print rows below their names: the first column to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in (names, *rows)) for column in range(len(names))]
    for row in (names, ["-" * width for width in widths], *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("   " + "  ".join([row[0].ljust(widths[0]), *cells[1:]]))
    print(flush=True)
