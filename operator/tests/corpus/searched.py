"""A search for the line, as a case describes it."""

from plimsoll.api.model import Model


class Searched(Model):
    """A whole search for the line on storage that does not scatter.

    Attributes:
        start: the first load.
        limit: the highest load.
        precision_percent: of the search.
        breaks: from and below which load trials break; without an end, all higher ones do.
        slower_percent: by how much these loads fall after each probe.

    """

    start: int = 500
    limit: int = 50_000
    precision_percent: int = 10
    breaks: tuple[tuple[float, float | None], ...]
    slower_percent: float = 0.0
