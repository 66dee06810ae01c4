"""The section of one topic on the statistics page: a list of facts, and charts."""

from odradek.pipeline.jobs.stats.hour_stats import HourStats, merge_hours
from odradek.pipeline.jobs.stats.job import TopicStats
from odradek.pipeline.jobs.stats.sketches import SizeSketch
from odradek.tools.tables import number, size

from .html_tables import escaped, facts
from .stats_json import instant
from .stats_report import hour_text, percent
from .svg_charts import Axis, Column, binary_end, columns, decimal_end, shares

_MAX_COLUMNS = 120
_STEPS_HOURS = (1, 2, 3, 6, 12, 24, 48, 168, 720, 8760)


def topic_section(anchor: str, topic: TopicStats, total: HourStats) -> str:
    """The HTML of one topic's section."""
    name = escaped(topic.topic)
    if not total.batches:
        return f'<section class="topic" id="{anchor}"><h2>{name}</h2><p>It is empty.</p></section>'
    hours, step = _columns_of(topic)
    per = "hour" if step == 1 else f"{step} hours" if step < 48 else f"{step // 24} days"
    parts = [f'<section class="topic" id="{anchor}"><h2>{name}</h2>', _facts(topic, total)]
    if hours:
        shown = [_column(at, stats.records, f"{stats.records:,}") for at, stats in hours]
        parts += [f"<h3>Records per {per}</h3>", columns(f"{topic.topic}: records", shown, _COUNTS)]
        shown = [_column(at, stats.stored_bytes, size(stats.stored_bytes)) for at, stats in hours]
        title = f"{topic.topic}: stored bytes"
        parts += [f"<h3>Stored per {per}</h3>", columns(title, shown, _BYTES)]
    parts += ["<h3>Sizes of records</h3>", _sizes(f"{topic.topic}: sizes", total.sizes)]
    if len(total.codecs) > 1 or "none" not in total.codecs:
        parts += ["<h3>Compression</h3>", _codecs(f"{topic.topic}: compression", total)]
    return "".join([*parts, "</section>"])


def _columns_of(topic: TopicStats) -> tuple[list[tuple[int, HourStats]], int]:
    """The columns of a chart over time, and how many hours one column covers.

    Hours are merged so that the columns fit into the chart. Empty columns are included.
    """
    numbers = [each for each in topic.hours if each >= 0]
    if not numbers:
        return [], 1
    first, last = min(numbers), max(numbers)
    steps = (each for each in _STEPS_HOURS if (last - first) // each < _MAX_COLUMNS)
    step = next(steps, last - first + 1)
    first -= first % step
    found: dict[int, list[HourStats]] = {}
    for each in numbers:
        found.setdefault((each - first) // step, []).append(topic.hours[each])
    count = (last - first) // step + 1
    return [(first + at * step, merge_hours(found.get(at, ()))) for at in range(count)], step


def _column(hour: int, value: int, amount: str) -> Column:
    text = hour_text(hour)
    return Column(text[5:], value, f"{text}: {amount}")


def _amount(value: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


_COUNTS = Axis(decimal_end, _amount)
_BYTES = Axis(binary_end, lambda value: size(int(value)))


def _sizes(title: str, sketch: SizeSketch) -> str:
    shown = [
        Column(size(low), count, f"{low:,} to {high - 1:,} bytes: {count:,} records")
        for low, high, count in sketch.doublings()
    ]
    return columns(title, shown, _COUNTS)


def _codecs(title: str, total: HourStats) -> str:
    shown = []
    for name, each in sorted(total.codecs.items(), key=lambda pair: -pair[1].stored_bytes):
        ratio = each.raw_bytes / each.stored_bytes if each.stored_bytes else 1.0
        shown.append(
            Column(name, each.stored_bytes, f"{name} {size(each.stored_bytes)}, {ratio:.2f}:1")
        )
    return shares(title, shown)


def _facts(topic: TopicStats, total: HourStats) -> str:
    kinds = (
        ("CreateTime", total.records - total.log_append_time_records - total.untimed_records),
        ("LogAppendTime", total.log_append_time_records),
        ("without", total.untimed_records),
    )
    times = ", ".join(f"{name} {count:,}" for name, count in kinds if count)
    return facts(
        [
            ("records", f"{total.records:,} in {topic.offsets:,} offsets"),
            ("size of a record", _distribution(total.sizes, " bytes")),
            ("batches", f"{total.batches:,} of {_distribution(total.batch_bytes, ' bytes')}"),
            ("records in a batch", _distribution(total.batch_records, "")),
            ("compression", f"{total.ratio:.2f}:1, {size(total.raw_bytes)} without"),
            ("keys", f"about {total.keys.distinct:,} distinct, {total.null_keys:,} null"),
            ("values", f"{size(total.value_bytes)}, {total.tombstones:,} null"),
            ("transactional", percent(total.transactional_records, total.records)),
            ("markers", number(total.markers)),
            ("timestamps", times),
            ("from, to", f"{instant(total.first_ms)} to {instant(total.last_ms)}"),
            ("out of order", percent(total.out_of_order_records, total.records)),
        ]
    )


def _distribution(sketch: SizeSketch, unit: str) -> str:
    return (
        f"{sketch.smallest:,} to {sketch.largest:,}{unit}, {sketch.average:,.1f} on average, "
        f"half up to {sketch.quantile(0.5):,}, 99 % up to {sketch.quantile(0.99):,}"
    )
