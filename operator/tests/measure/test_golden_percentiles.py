"""Documents of real fio: what it printed is what we calculate."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.measure.histogram import Histogram, index_of_midpoint

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = sorted(GOLDEN.glob("fio-*.json"))
DIRECTIONS = ("read", "write", "trim", "sync")
KINDS = ("lat_ns", "clat_ns", "slat_ns")


def documents(text: str) -> Iterator[dict[str, Any]]:
    """Yield every whole document in a file that may hold several, and other lines between them."""
    decoder, position = json.JSONDecoder(), 0
    while (start := text.find("{", position)) >= 0:
        try:
            document, position = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            position = start + 1
        else:
            yield document


def sections(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every latency section with bins."""
    for document in documents(path.read_text(errors="replace")):
        for job in document.get("jobs", ()):
            for direction in DIRECTIONS:
                for kind in KINDS:
                    section = job.get(direction, {}).get(kind, {})
                    if section.get("bins"):
                        yield section


def histogram(section: dict[str, Any]) -> Histogram:
    return Histogram(counts={index_of_midpoint(int(key)): count for key, count in section["bins"].items()})


def test_there_are_enough_documents() -> None:
    assert len(FILES) >= 8
    assert sum(1 for path in FILES for section in sections(path) if section.get("percentile")) >= 8


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_percentiles_equal_those_fio_printed(path: Path) -> None:
    for section in sections(path):
        merged = histogram(section)
        assert merged.total == section["N"]
        printed = section.get("percentile", {})
        assert {key: merged.percentile(float(key)) for key in printed} == printed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_text_form_keeps_real_histograms(path: Path) -> None:
    for section in sections(path):
        original = histogram(section)
        assert Histogram.decode(original.encode()) == original
        assert len(original.encode()) < 4096
