"""What a search for the line has found so far, and the next load that it needs."""

from dataclasses import dataclass

from plimsoll.api.line import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A search for the line after some probes; loads are in operations per second or operations in flight.

    Attributes:
        line: the line as far as it is known, with the ending of a search that ended.
        next_load: the next load to offer; None if the search ended.
        evidence: the Bayes factor behind an ending that doubts the line; 0 of other endings.

    """

    line: Line
    next_load: float | None
    evidence: float = 0.0
