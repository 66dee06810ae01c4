"""The page of `odradek pipeline stats --html`: one file without scripts or links to other files.

It can be read on a screen and printed. `stats_page.html` is its template. The charts are SVG, which
Vega-Lite draws here while the page is made.
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple

import vl_convert
from jinja2 import Environment
from markupsafe import Markup

from odradek.pipeline.jobs.stats.hour_stats import HourStats, merge_hours
from odradek.pipeline.jobs.stats.job import StatsReport, TopicStats
from odradek.tools.tables import number, size

from .stats_json import instant
from .stats_report import hour_text, lag_cells, lagging, percent

_MAX_SECTIONS = 100  # topics with a section of their own: the largest ones
_MAX_WITH_CHARTS = 30  # a topic's charts take 0.1 s and 30 kB
_MAX_LAG_ROWS = 1000
_MAX_COLUMNS = 60
_MAX_LABELS = 3
_STEPS_HOURS = (1, 2, 3, 6, 12, 24, 48, 168, 720, 8760)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_COUNTS = {"format": "~s", "tickMinStep": 1, "labelExpr": "datum.value ? datum.label : 0"}
_SOFT, _LINE = "#66727f", "#dfe4ea"
# Vega writes each column's text as an ARIA label, which a pointer does not show.
_COLUMN = re.compile(r'<path aria-label="([^"]*)" role="graphics-symbol"[^>]* d="([^"]*)"[^>]*/>')


class Column(NamedTuple):
    """A column of a chart. `label` is the text on the axis if there is room for it."""

    label: str
    value: float
    tooltip: str


def page(report: StatsReport, place: str, made_at: datetime) -> str:
    """Return the HTML. `place` names the directories that were read."""
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_printable
    )
    environment.filters |= {"number": number, "size": size, "percent": percent, "instant": instant}
    template = files(__package__).joinpath("stats_page.html").read_text("utf-8")
    topics = [(topic, topic.total) for topic in report.topics]
    topics.sort(key=lambda pair: -pair[1].stored_bytes)
    lags = sorted(lagging(report.groups), key=lambda pair: -(pair[1].lag or 0))
    return environment.from_string(template).render(
        report=report,
        place=place,
        made=made_at.strftime("%Y-%m-%d %H:%M UTC"),
        all=merge_hours(total for _, total in topics),
        topics=topics,
        lags=lags[:_MAX_LAG_ROWS],
        max_sections=_MAX_SECTIONS,
        max_with_charts=_MAX_WITH_CHARTS,
        charts=charts,
        lag_cells=lag_cells,
    )


def _printable(value: object) -> object:
    """Replace characters that cannot be printed; the template escapes the others."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(each if each.isprintable() else "\ufffd" for each in value)


def charts(topic: TopicStats, total: HourStats) -> list[tuple[str, Markup]]:
    """Return the title and the SVG of each chart of a topic."""
    hours, step = _columns_of(topic)
    per = "hour" if step == 1 else f"{step} hours" if step < 48 else f"{step // 24} days"
    found = []
    if hours:
        shown = [
            Column(text, each.records, f"{text}: {each.records:,}") for text, each in hours.items()
        ]
        found.append((f"Records per {per}", draw(shown, _COUNTS)))
        power = _power(max(each.stored_bytes for each in hours.values()))
        shown = [
            Column(text, each.stored_bytes / 1024**power, f"{text}: {size(each.stored_bytes)}")
            for text, each in hours.items()
        ]
        found.append((f"Stored per {per}, {_UNITS[power]}", draw(shown, {})))
    if total.sizes.count:
        shown = [
            Column(size(low), count, f"{low:,} to {high - 1:,} bytes: {count:,} records")
            for low, high, count in total.sizes.doublings()
        ]
        found.append(("Records by size", draw(shown, _COUNTS)))
    return found


def _columns_of(topic: TopicStats) -> tuple[dict[str, HourStats], int]:
    """Return the columns of a chart over time, and how many hours one column covers.

    Hours are merged so that the columns fit into the chart. Empty columns are included.
    """
    numbers = [each for each in topic.hours if each >= 0]
    if not numbers:
        return {}, 1
    first, last = min(numbers), max(numbers)
    steps = (each for each in _STEPS_HOURS if (last - first) // each < _MAX_COLUMNS)
    step = next(steps, last - first + 1)
    found: dict[int, list[HourStats]] = {}
    for each in numbers:
        found.setdefault(each // step, []).append(topic.hours[each])
    columns = range(first // step, last // step + 1)
    return {hour_text(at * step): merge_hours(found.get(at, ())) for at in columns}, step


def _power(largest: int) -> int:
    """Return which power of 1024 is the unit for values up to this one."""
    return min(max(largest.bit_length() - 1, 0) // 10, len(_UNITS) - 1)


def draw(shown: Sequence[Column], axis: Mapping[str, Any]) -> Markup:
    """Return a chart of columns as SVG; `axis` are Vega's settings of the axis of values."""
    labels = [each.label for each in shown]
    some = labels[:: math.ceil(len(labels) / _MAX_LABELS)]
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": 310,
        "height": 120,
        "data": {"values": [each._asdict() for each in shown if each.value]},
        "mark": "bar",
        "encoding": {
            "x": {
                "field": "label",
                "type": "ordinal",
                "scale": {"domain": labels},
                "axis": {"values": some, "labelAngle": 0},
            },
            "y": {"field": "value", "type": "quantitative", "axis": {"tickCount": 4, **axis}},
            "description": {"field": "tooltip", "type": "nominal"},
        },
        "config": {
            "background": None,
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {"aria": False, "ticks": False, "title": None, "labelPadding": 6}
            | {"labelColor": _SOFT, "domainColor": _LINE, "gridColor": _LINE},
        },
    }
    svg = vl_convert.vegalite_to_svg(chart)  # the texts in it are escaped
    return Markup(_COLUMN.sub(r'<path class="column" d="\2"><title>\1</title></path>', svg))
