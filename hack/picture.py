"""Take a picture of sections of a report, in a real Chromium: `hack/picture.py REPORT PICTURE FIRST LAST`.

FIRST and LAST are keys of sections. The pictures of the README and of `make quickstart`:

    hack/picture.py build/curves.html docs/images/curves.png curves curves
    hack/picture.py build/quickstart/report.html docs/images/report.png verdicts results
"""

# ruff: noqa: INP001 - a script, run by path
import argparse
import shutil
from pathlib import Path

from playwright.sync_api import FloatRect, Page, sync_playwright

WIDTH = 1032
SCALE = 1.5
"""Pixels of the picture for one of the page, so that it is sharp on a dense screen."""
MARGIN = 16


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("first")
    parser.add_argument("last")
    given = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 900},
            device_scale_factor=SCALE,
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.goto(given.report.resolve().as_uri())
        page.wait_for_selector("html[data-drawn]", state="attached")
        page.screenshot(path=given.picture, full_page=True, clip=clip(page, given.first, given.last))
        browser.close()


def clip(page: Page, first: str, last: str) -> FloatRect:
    """Return the part of the page from the top of one section to the bottom of another."""
    boxes = [page.locator(f"section#{key}").bounding_box() for key in (first, last)]
    top, bottom = (box for box in boxes if box is not None)
    end = bottom["y"] + bottom["height"]
    return {"x": 0, "y": max(0, top["y"] - MARGIN), "width": WIDTH, "height": end - top["y"] + 2 * MARGIN}


if __name__ == "__main__":
    main()
