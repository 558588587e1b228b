"""The load that a trial of a search offers."""

from dataclasses import dataclass

from plimsoll.api.line import LineSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The load that a trial of a search offers: operations per second or in flight of all clients together."""

    search: LineSearch
    load: float
