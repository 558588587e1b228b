"""The search for the line at a point of a plan: its settings, and the point at one of its loads."""

from plimsoll.api.line import LineSearch
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.model import Settings
from plimsoll.plan.document import Point
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.registry import TOOLS


def search_settings(point: Point, search: LineSearch) -> Settings:
    """Return the settings of a point's search; every load is shared evenly by its clients.

    Raises:
        ValueError: no load between start and limit can be shared evenly.

    """
    return settings_of(search, _parameters(point), point.clients)


def settings_of(search: LineSearch, parameters: ToolParameters, clients: int) -> Settings:
    """Return the settings of a search of that number of clients.

    Raises:
        ValueError: no load between start and limit can be shared evenly.

    """
    return Settings(
        start=search.start,
        limit=search.limit,
        precision_percent=search.precision_percent,
        step=clients * parameters.load_step(search.vary),
    )


def at_load(point: Point, search: LineSearch, load: float) -> Point:
    """Return the point whose clients offer this load together, a multiple of the step of `search_settings`."""
    parameters = _parameters(point).at_load(search.vary, round(load) // point.clients)
    return point.model_copy(
        update={"parameters": parameters.model_dump(mode="json"), "label": parameters.label()},
    )


def offer_at(point: Point, search: LineSearch, load: float) -> Offer:
    """Return the offer of this load at a point."""
    parameters = _parameters(point)
    shares = {operation: percent / 100 for operation, percent in parameters.shares.items()}
    return Offer(search=search, load=load, depth=parameters.most_in_flight, shares=shares)


def _parameters(point: Point) -> ToolParameters:
    parameters: ToolParameters = TOOLS[point.tool].parameters.model_validate(point.parameters)
    return parameters
