"""The built site in a real browser: no wider than the screen, readable when dark, searchable, without other hosts."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle, repeat
from threading import Thread
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from .test_guides import ROOT

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]
PAGES = (
    "",
    "tutorials/quickstart/",
    "how-to/install/",
    "how-to/comparing/",
    "how-to/troubleshooting/",
    "reference/api/BenchmarkRun/",
    "reference/cli/",
    "reference/metrics/",
    "explanation/line/",
)

# The least contrast of a page's texts and their backgrounds, as WCAG defines it, and the text that has it.
CONTRAST = """() => {
  const parse = color => {
    const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
    const context = canvas.getContext("2d");
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return {rgb: [r, g, b], alpha: a / 255};
  };
  const over = (top, below) => top.rgb.map((value, i) => value * top.alpha + below[i] * (1 - top.alpha));
  const background = element => {
    if (!element) return [255, 255, 255];
    const color = parse(getComputedStyle(element).backgroundColor);
    return color.alpha == 1 ? color.rgb : over(color, background(element.parentElement));
  };
  const luminance = rgb => {
    const [r, g, b] = rgb.map(value => value / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let least = [21, "nothing"];
  for (const element of document.querySelectorAll(".md-content :is(p, li, td, th, h1, h2, h3, a, code, code span)")) {
    const text = [...element.childNodes].filter(n => n.nodeType == Node.TEXT_NODE).map(n => n.data.trim()).join("");
    if (!text || element.matches(".headerlink")) continue;
    const below = background(element);
    const color = over(parse(getComputedStyle(element).color), below);
    const [dark, light] = [luminance(color), luminance(below)].sort((a, b) => a - b);
    least = [[(light + 0.05) / (dark + 0.05), `${element.tagName} ${text}`], least].sort((a, b) => a[0] - b[0])[0];
  }
  return least;
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site, serve it, and return its address: the search needs a server."""
    directory = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PLIMSOLL_VENV": sys.prefix}
    subprocess.run([ROOT / "hack" / "docs.sh", directory], env=environment, check=True, timeout=300)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=directory)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


Open = Callable[..., Page]


@pytest.fixture
def opened(site: str, chromium: Browser) -> Iterator[Open]:
    """Open a page of the site; in the end, nothing was requested from another host and nothing failed."""
    contexts = []
    requests: list[str] = []
    complaints: list[str] = []

    def open_page(path: str, width: int = 1280, scheme: Scheme = "light") -> Page:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(site + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [address for address in requests if not address.startswith((site, "data:"))] == []


@pytest.mark.parametrize(
    ("path", "width", "scheme"),
    [("", 1280, "dark"), *zip(PAGES, repeat(390), cycle(("light", "dark")))],
)
def test_a_page_never_scrolls_sideways_and_its_texts_are_readable(
    path: str, width: int, scheme: Scheme, opened: Open
) -> None:
    page = opened(path, width, scheme)
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
    contrast, text = page.evaluate(CONTRAST)
    assert contrast >= 4.5, text


def test_the_search_finds_a_check(opened: Open) -> None:
    page = opened("")
    page.locator("input.md-search__input").click()
    page.get_by_text("Type to start searching").wait_for()
    page.keyboard.type("CacheSized")
    page.wait_for_selector(".md-search-result__item a[href*='/reference/checks/']")
    page.wait_for_load_state("networkidle")


def test_a_link_to_a_file_outside_of_the_pages_leads_to_the_repository(opened: Open) -> None:
    link = opened("how-to/install/").locator("article a", has_text="Dockerfile")
    assert link.get_attribute("href") == "https://github.com/plimsoll/plimsoll/blob/main/Dockerfile"
