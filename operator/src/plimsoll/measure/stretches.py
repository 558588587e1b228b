"""Lists of intervals, each in ascending order and without overlap."""

from collections.abc import Iterable, Sequence

from plimsoll.measure.window import Interval


def both(some: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """Return the intersection of two lists."""
    found, rest = list[Interval](), list(reversed(others))
    for stretch in some:
        while rest and rest[-1].end <= stretch.start:
            rest.pop()
        while rest and rest[-1].start < stretch.end:
            found.append(Interval(start=max(stretch.start, rest[-1].start), end=min(stretch.end, rest[-1].end)))
            if rest[-1].end > stretch.end:
                break
            rest.pop()
    return found


def joined(stretches: Iterable[Interval], *, wider_by: int = 0) -> list[Interval]:
    """Return the union of any intervals, each extended at both ends."""
    found = list[Interval]()
    for stretch in sorted(stretches, key=lambda item: item.start):
        start, end = stretch.start - wider_by, stretch.end + wider_by
        if found and found[-1].end >= start:
            before = found.pop()
            start, end = before.start, max(before.end, end)
        found.append(Interval(start=start, end=end))
    return found


def without(some: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """Return the time in the first list that is not in the second."""
    if not some:
        return []
    begin, end = some[0].start, some[-1].end
    inner = both(others, [Interval(start=begin, end=end)])
    edges = [begin, *(edge for stretch in inner for edge in (stretch.start, stretch.end)), end]
    free = [Interval(start=edges[n], end=edges[n + 1]) for n in range(0, len(edges), 2) if edges[n] < edges[n + 1]]
    return both(some, free)


def length_of(stretches: Iterable[Interval]) -> int:
    """Return the total length."""
    return sum(stretch.length for stretch in stretches)
