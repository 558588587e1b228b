"""Renders a page as one HTML file with its style, scripts and figures, which needs no network.

The template escapes all texts and makes them printable, and so does `plain` in the figures. The content security policy
of the file allows only its own two scripts, by their digests, and no requests.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped] # plotly has no types

from plimsoll import __version__
from plimsoll.api.json_reader import printable_text
from plimsoll.report import plot
from plimsoll.report.view import Block, Chart, Details, ReportPage


def render(page: ReportPage) -> str:
    """Return the HTML text, including about 5 MB for plotly's script."""
    environment = Environment(
        loader=PackageLoader("plimsoll.report"),
        autoescape=True,
        finalize=lambda part: printable_text(part) if isinstance(part, str) and not isinstance(part, Markup) else part,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # plotly sets inline styles, and exports images of figures through blob and data URLs.
    policy = "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:"
    scripts = [_in_script(get_plotlyjs()), _in_script(_resource("report.js"))]
    digests = (base64.b64encode(sha256(text.encode()).digest()).decode() for text in scripts)
    return environment.get_template("report.html.j2").render(
        page=page,
        figures=embedded(page),
        plotly=Markup(scripts[0]),  # noqa: S704 - the script of a library
        script=Markup(scripts[1]),  # noqa: S704 - the script of this package
        style=Markup(_resource("report.css")),  # noqa: S704 - the style of this package
        policy=policy.format(" ".join(f"'sha256-{digest}'" for digest in digests)),
        version=__version__,
    )


def embedded(page: ReportPage) -> Markup:
    """Return the figures as JSON that cannot end its HTML element."""
    # By the identifiers that the template writes.
    figures = {
        printable_text(chart.key): {"data": plot.plain(chart.data), "layout": plot.plain(chart.layout)}
        for section in page.sections
        for chart in _charts(section.blocks)
    }
    text = json.dumps(figures, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - contains no HTML


def _charts(blocks: Iterable[Block]) -> Iterator[Chart]:
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif isinstance(block, Details):
            yield from _charts(block.blocks)


def _resource(name: str) -> str:
    return files("plimsoll.report").joinpath("templates", name).read_text(encoding="utf-8")


def _in_script(text: str) -> str:
    """Return a script in which no string ends the HTML element or starts a comment."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
