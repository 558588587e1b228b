"""Impossible numbers in a client's document. One such number costs the part of the document that contains it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plimsoll.api.model import Model
from plimsoll.measure.sample import (
    Cells,
    ClientDocument,
    CpuUse,
    DeviceUse,
    Gaps,
    HostUse,
    Measurement,
    MemoryUse,
    NetworkUse,
    OperationSample,
    OsdRate,
    PeerRate,
)

_LIMIT = 2**63
_GREATEST = {
    (Measurement, "depth_full_share"): 1,
    (CpuUse, "node_busy"): 1,
    # A device's busy time is counted in clock ticks, and may exceed the time between two readings by one or two.
    (DeviceUse, "busy"): 1.05,
    (PeerRate, "lost_percent"): 100,
}
_LEAST = {
    (Measurement, "submitters"): 1,
    (Measurement, "in_flight"): 1,
    (OperationSample, "runtime"): 1,
    (OsdRate, "seconds"): 1e-6,
    (PeerRate, "seconds"): 1e-6,
    (HostUse, "seconds"): 1e-3,
    (HostUse, "uncut_bytes"): 4096,
    (CpuUse, "limit"): 1e-3,
    (CpuUse, "node_processors"): 1,
    (MemoryUse, "node_total"): 1,
    (NetworkUse, "link"): 1,
}


class _Number(NamedTuple):
    """A number of a document with its range, both ends included."""

    name: str
    value: float
    least: float
    greatest: float

    @property
    def is_plausible(self) -> bool:
        """Whether the number is possible; comparisons with NaN are false."""
        return self.least <= self.value <= self.greatest


def implausible_number(document: ClientDocument, measurement: Measurement) -> str:
    """Name the first impossible number of a measurement; empty if there is none."""
    of_document = (
        _number(document, "launched_at", "launchedAt"),
        _number(document, "data_set_bytes", "dataSetBytes"),
    )
    operations = Counter(sample.operation for sample in measurement.operations)
    repeated = (f"{operation} appears {n} times" for operation, n in operations.items() if n > 1)
    return _first([*of_document, *_numbers(measurement)]) or _wrong_gaps(measurement.gaps) or next(repeated, "")


def implausible_host(host: HostUse) -> str:
    """Name the first impossible number of an observation of the host; empty if there is none."""
    return _first(_numbers(host))


def _first(numbers: Iterable[_Number]) -> str:
    return next((f"{item.name} is {str(item.value)[:40]}" for item in numbers if not item.is_plausible), "")


def _numbers(part: Model, prefix: str = "") -> Iterator[_Number]:
    """Yield the numbers of a model and of the models in it; those of an operation are named after the operation."""
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        path = f"{prefix}{field.alias or name}"
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield _number(part, name, path)
        for one in value if isinstance(value, tuple) else (value,):
            # Cells are checked as a series: they have to add up to the operation's totals.
            if isinstance(one, Model) and not isinstance(one, Cells):
                yield from _numbers(one, f"{one.operation}." if isinstance(one, OperationSample) else f"{path}.")


def _number(part: Model, name: str, path: str) -> _Number:
    key = (type(part), name)
    return _Number(path, getattr(part, name), _LEAST.get(key, 0), _GREATEST.get(key, _LIMIT - 1024))


def _wrong_gaps(gaps: Gaps | None) -> str:
    if gaps is None:
        return ""
    if len(gaps.starts) != len(gaps.lengths):
        return f"gaps has {len(gaps.starts)} starts and {len(gaps.lengths)} lengths"
    end = 0
    for start, length in zip(gaps.starts, gaps.lengths, strict=True):
        if not end <= start <= start + length < _LIMIT:
            return f"a gap of {str(length)[:40]} ms begins {str(start)[:40]} ms after the start"
        end = start + length
    return ""
