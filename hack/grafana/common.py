"""What all dashboards share: colours, queries, and how panels are put on a page."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from grafana_foundation_sdk.builders import barchart as bars
from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    gauge,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

BLUE, ORANGE, VERMILION, GREEN, GREY = "#0072B2", "#E69F00", "#D55E00", "#009E73", "#8F8F8F"
"""Okabe and Ito's, which people with any kind of colour vision tell apart. Nothing is said by colour alone."""

VERDICTS = {"Valid": GREEN, "Suspect": ORANGE, "Invalid": VERMILION}

TAG = "plimsoll"

_DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
_COLUMNS = 24

Panel = TypeVar(
    "Panel",
    bars.Panel,
    bargauge.Panel,
    gauge.Panel,
    stat.Panel,
    statetimeline.Panel,
    table.Panel,
    timeseries.Panel,
)
"""A builder of any of the kinds of panels that are used."""


class Page:
    """A dashboard to which rows and panels are added from left to right and from top to bottom."""

    def __init__(self, uid: str, title: str, description: str, *, since: str, refresh: str = "") -> None:
        """Begin a page that shows the time from `since` until now."""
        self.builder = (
            dashboard.Dashboard(f"Plimsoll / {title}")
            .uid(uid)
            .description(description)
            .tags([TAG])
            .time(since, "now")
            .timezone("browser")
            .refresh(refresh)
            .tooltip(model.DashboardCursorSync.CROSSHAIR)
            .readonly()
            .link(_links())
            .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        )
        self._panels = 0

    def row(self, title: str) -> None:
        """Begin a new row."""
        self.builder.with_row(dashboard.Row(title).id(self._next_id()))

    def add(self, panel: Panel, width: int, height: int) -> None:
        """Put a panel right of the last panel, or below without room; a page has 24 columns."""
        if not 0 < width <= _COLUMNS:
            raise ValueError(f"a panel of {width} columns does not fit")
        self.builder.with_panel(panel.id(self._next_id()).span(width).height(height))

    def variable(self, name: str, label: str, query: str, *, multi: bool = False) -> None:
        """Let people choose among the values of a label; of several they may choose all."""
        chooser = (
            dashboard.QueryVariable(name)
            .label(label)
            .query(query)
            .datasource(_DATASOURCE)
            .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(model.VariableSort.ALPHABETICAL_ASC)
            .multi(multi)
            .include_all(multi)
        )
        if multi:
            chooser = chooser.all_value(".*").current(model.VariableOption(text=["All"], value=["$__all"]))
        self.builder.with_variable(chooser)

    def _next_id(self) -> int:
        self._panels += 1
        return self._panels


def dressed(panel: Panel, title: str, description: str, unit: str, *, nothing: str = "no data") -> Panel:
    """Return a panel with the properties of all panels; `nothing` is its text without a value."""
    return panel.title(title).description(description).unit(unit).datasource(_DATASOURCE).no_value(nothing)


def range_query(expr: str, legend: str, ref: str = "A") -> prometheus.Dataquery:
    """Return a query over the time that is shown."""
    return prometheus.Dataquery().expr(expr).legend_format(legend).range().ref_id(ref).datasource(_DATASOURCE)


def instant_query(expr: str, legend: str, ref: str = "A") -> prometheus.Dataquery:
    """Return a query at the end of the time that is shown."""
    return prometheus.Dataquery().expr(expr).legend_format(legend).instant().ref_id(ref).datasource(_DATASOURCE)


def table_query(expr: str, ref: str = "A") -> prometheus.Dataquery:
    """Return the same as rows, a column for each label."""
    return instant_query(expr, "__auto", ref).format(PromQueryFormat.TABLE)


def only_last() -> common.ReduceDataOptions:
    """Show one value for each series: the last one."""
    return common.ReduceDataOptions().values(values=False).calcs(["lastNotNull"])


def number(*, names: bool = False) -> stat.Panel:
    """Return a panel of large numbers, or of the names of series: what a label says."""
    mode = shapes.BigValueTextMode.NAME if names else shapes.BigValueTextMode.AUTO
    panel = stat.Panel().reduce_options(only_last()).text_mode(mode).graph_mode(shapes.BigValueGraphMode.NONE)
    return panel.color_mode(shapes.BigValueColorMode.VALUE).color_scheme(fixed(BLUE))


def share() -> gauge.Panel:
    """Return a panel of ratios from 0 to 1."""
    panel = gauge.Panel().reduce_options(only_last()).min(0).max(1).decimals(0)
    return panel.color_scheme(fixed(BLUE)).thresholds(steps(BLUE))


def legend(mode: shapes.LegendDisplayMode) -> common.VizLegendOptions:
    """Return a legend below a panel."""
    options = common.VizLegendOptions().display_mode(mode).show_legend(show_legend=True)
    return options.placement(shapes.LegendPlacement.BOTTOM)


def lines(*, log: bool = False, signed: bool = False) -> timeseries.Panel:
    """Return a panel of lines over time, gaps left open, with the last and the greatest value in the legend.

    The axis begins at 0, unless it is logarithmic, or values may be less than that (`signed`).
    """
    table_below = legend(shapes.LegendDisplayMode.TABLE).calcs(["lastNotNull", "max"])
    all_at_once = common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI).sort(shapes.SortOrder.DESCENDING)
    panel = timeseries.Panel().legend(table_below).tooltip(all_at_once)
    panel = panel.line_width(1).fill_opacity(5).span_nulls(span_nulls=False).color_scheme(by_series())
    if log:
        return panel.scale_distribution(logarithmic())
    return panel if signed else panel.min(0)


def levels() -> bargauge.Panel:
    """Return a panel of horizontal bars for counts."""
    panel = bargauge.Panel().reduce_options(only_last()).orientation(shapes.VizOrientation.HORIZONTAL)
    panel = panel.display_mode(shapes.BarGaugeDisplayMode.BASIC).decimals(0).min(0)
    return panel.color_scheme(fixed(BLUE)).thresholds(steps(BLUE))


def logarithmic() -> common.ScaleDistributionConfig:
    """Return an axis on which a factor of ten is the same everywhere: a p99.9 does not hide a p50."""
    return common.ScaleDistributionConfig().type(shapes.ScaleDistribution.LOG).log(10)


def fixed(colour: str) -> dashboard.FieldColor:
    """Colour everything the same."""
    return dashboard.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color(colour)


def by_series() -> dashboard.FieldColor:
    """Give a series the same colour wherever its name appears."""
    return dashboard.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def by_threshold() -> dashboard.FieldColor:
    """Colour values by the thresholds of the panel."""
    return dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS)


def steps(base: str, *above: tuple[float, str]) -> dashboard.ThresholdsConfig:
    """Return thresholds: a colour below all values, and one from each value on."""
    first = [model.Threshold(value=None, color=base)]
    rest = [model.Threshold(value=value, color=colour) for value, colour in above]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(first + rest)


def words(meanings: Mapping[str, tuple[str, str]]) -> model.ValueMap:
    """Show words in colours in place of values."""
    results = {
        value: model.ValueMappingResult(text=text, color=colour, index=index)
        for index, (value, (text, colour)) in enumerate(meanings.items())
    }
    return model.ValueMap(options=results)


def nan_as(text: str) -> model.SpecialValueMap:
    """Show a text where a value is not a number; absent values remain empty."""
    options = model.DashboardSpecialValueMapOptions(
        match=model.SpecialValueMatch.NA_N, result=model.ValueMappingResult(text=text, color=GREY)
    )
    return model.SpecialValueMap(options=options)


def merged(columns: Mapping[str, str]) -> list[model.DataTransformerConfig]:
    """Make one table of the queries of a panel.

    Rows with the same labels become one. `columns` has what is shown, in order, with the names for people: labels, and
    `Value #A` for the value of query A. Everything else is hidden.
    """
    keep = {"include": {"names": list(columns)}}
    order = {
        "indexByName": {name: index for index, name in enumerate(columns)},
        "renameByName": dict(columns),
        "excludeByName": {},
    }
    return [
        model.DataTransformerConfig(id_val="merge", options={}),
        model.DataTransformerConfig(id_val="filterFieldsByName", options=keep),
        model.DataTransformerConfig(id_val="organize", options=order),
    ]


def column(panel: table.Panel, name: str, unit: str, decimals: int | None = None) -> table.Panel:
    """Give a column of a table its unit."""
    properties = [model.DynamicConfigValue(id_val="unit", value=unit)]
    if decimals is not None:
        properties.append(model.DynamicConfigValue(id_val="decimals", value=decimals))
    return panel.override_by_name(name, properties)


def verdict_column(panel: table.Panel, name: str, colours: Mapping[str, str] = VERDICTS) -> table.Panel:
    """Show verdicts in their colours, by default the verdicts of numbers."""
    coloured = shapes.TableColorTextCellOptions()
    properties = [
        model.DynamicConfigValue(
            id_val="mappings", value=[words({verdict: (verdict, colour) for verdict, colour in colours.items()})]
        ),
        model.DynamicConfigValue(id_val="custom.cellOptions", value=coloured),
    ]
    return panel.override_by_name(name, properties)


def coloured_by_name(panel: Panel, colours: Mapping[str, str]) -> Panel:
    """Give the series of these names their colours."""
    for name, colour in colours.items():
        value = {"mode": "fixed", "fixedColor": colour}
        panel = panel.override_by_name(name, [model.DynamicConfigValue(id_val="color", value=value)])
    return panel


def with_queries(panel: Panel, queries: Iterable[prometheus.Dataquery]) -> Panel:
    """Add queries to a panel."""
    for query in queries:
        panel = panel.with_target(query)
    return panel


def _links() -> dashboard.DashboardLink:
    """Return the menu of all dashboards of Plimsoll; time and variables go along."""
    menu = dashboard.DashboardLink("Plimsoll").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    return menu.as_dropdown(as_dropdown=False).include_vars(include_vars=True).keep_time(keep_time=True)
