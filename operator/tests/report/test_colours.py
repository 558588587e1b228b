"""The contrast of colours to their background, in light and dark."""

import re
from importlib.resources import files

import pytest

from plimsoll.report.plot import MOST_SERIES

TEXT = files("plimsoll.report").joinpath("templates", "report.css").read_text(encoding="utf-8")


def theme(number: int) -> dict[str, str]:
    """Return the colours of the light theme (0) or the dark one (1)."""
    blocks = re.findall(r":root[^{]*\{([^}]*--page[^}]*)\}", TEXT)
    assert len(blocks) == 2
    return dict(re.findall(r"--([a-z]+[0-9]?): (#[0-9a-f]{6});", blocks[number]))


def luminance(colour: str) -> float:
    """Source: WCAG 2.2, relative luminance."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("number", [0, 1])
def test_every_series_stands_out_from_its_background(number: int) -> None:
    colours = theme(number)
    assert len({colours[f"series{place}"] for place in range(MOST_SERIES)}) == MOST_SERIES
    for place in range(MOST_SERIES):
        assert contrast(colours[f"series{place}"], colours["panel"]) >= 3, place


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", ["text", "muted", "link", "good", "warn", "bad"])
def test_every_text_can_be_read(number: int, name: str) -> None:
    colours = theme(number)
    for background in ("page", "panel"):
        assert contrast(colours[name], colours[background]) >= 4.5, background


def test_both_themes_have_the_same_names() -> None:
    assert theme(0).keys() == theme(1).keys()
