"""The page of `odradek pipeline stats --html`: one file without scripts or links to other files.

It can be read on a screen and printed.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from odradek.pipeline.jobs.stats.hour_stats import HourStats
from odradek.pipeline.jobs.stats.job import StatsReport, TopicStats
from odradek.pipeline.jobs.stats.lag import GroupLag
from odradek.tools.tables import number, size

from .html_tables import escaped, table, with_bar
from .stats_json import instant
from .stats_report import lag_cells, percent
from .stats_style import STYLE
from .stats_topic import topic_section

_MAX_TOPICS_WITH_CHARTS = 100  # the largest ones
_MAX_LAG_ROWS = 1000


def page(report: StatsReport, place: str, made_at: datetime) -> str:
    """The HTML of the whole page. `place` names the directories that were read."""
    totals = {topic.topic: topic.total for topic in report.topics}
    largest = sorted(report.topics, key=lambda topic: -totals[topic.topic].stored_bytes)
    made = made_at.strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>odradek: statistics of topics, {made}</title><style>{STYLE}</style></head><body>",
        f"<header><h1>Statistics of topics</h1><p>{escaped(place)} · {made}</p></header>",
        _tiles(report, totals.values()),
        _problems(report.problems),
        _overview(largest, totals),
        *(
            topic_section(f"t{index}", topic, totals[topic.topic])
            for index, topic in enumerate(largest[:_MAX_TOPICS_WITH_CHARTS])
        ),
        _groups(report.groups),
        "<footer>The error of size quantiles is at most 3 %, of distinct keys about 2 %. "
        "Hours are UTC.</footer></body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _tiles(report: StatsReport, totals: Iterable[HourStats]) -> str:
    sums = list(totals)
    stored = sum(each.stored_bytes for each in sums)
    raw = sum(each.raw_bytes for each in sums)
    tiles = [
        ("topics", str(len(report.topics))),
        ("records", f"{sum(each.records for each in sums):,}"),
        ("stored", size(stored)),
        ("uncompressed", size(raw)),
        ("ratio", f"{raw / stored if stored else 1:.2f}"),
        ("groups", str(len(report.groups))),
        ("lag", f"{sum(group.lag for group in report.groups):,}"),
    ]
    cells = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in tiles)
    return f'<section class="tiles">{cells}</section>'


def _problems(problems: Sequence[str]) -> str:
    if not problems:
        return ""
    lines = "".join(f"<li>{escaped(each)}</li>" for each in problems)
    return f'<section class="problems"><h2>Could not be read</h2><ul>{lines}</ul></section>'


def _overview(topics: Sequence[TopicStats], totals: dict[str, HourStats]) -> str:
    header = (
        "topic",
        "partitions",
        "records",
        "stored",
        "ratio",
        "codecs",
        "99 % up to",
        "keys",
        "tombstones",
        "transactional",
        "first",
        "last",
    )
    largest = max((each.stored_bytes for each in totals.values()), default=0)
    rows = [
        _topic_row(index, topic, totals[topic.topic], largest) for index, topic in enumerate(topics)
    ]
    return f"<section><h2>Topics</h2>{table(header, rows)}</section>"


def _topic_row(index: int, topic: TopicStats, total: HourStats, largest: int) -> tuple[str, ...]:
    name = escaped(topic.topic)
    return (
        f'<a href="#t{index}">{name}</a>' if index < _MAX_TOPICS_WITH_CHARTS else name,
        number(topic.partitions),
        number(total.records),
        with_bar(size(total.stored_bytes), total.stored_bytes, largest),
        f"{total.ratio:.2f}",
        escaped(", ".join(sorted(total.codecs))),
        number(total.sizes.quantile(0.99)),
        number(total.keys.distinct),
        number(total.tombstones),
        percent(total.transactional_records, total.records),
        (instant(total.first_ms) or "")[:10],
        (instant(total.last_ms) or "")[:10],
    )


def _groups(groups: Sequence[GroupLag]) -> str:
    if not groups:
        return ""
    largest = max(group.lag for group in groups)
    header = ("group", "type", "members", "partitions", "lag", "lost", "last commit")
    rows = [
        (
            escaped(group.group),
            escaped(f"{group.kind} ({group.protocol})" if group.protocol else group.kind),
            str(group.members),
            number(len(group.partitions)),
            with_bar(f"{group.lag:,}", group.lag, largest),
            number(group.lost),
            instant(group.last_commit_ms) or "",
        )
        for group in sorted(groups, key=lambda group: -group.lag)
    ]
    return f"<section><h2>Groups</h2>{table(header, rows)}{_lags(groups)}</section>"


def _lags(groups: Sequence[GroupLag]) -> str:
    lags = [
        (group.group, each)
        for group in groups
        for each in group.partitions
        if each.lag is None or each.lag or each.lost
    ]
    lags.sort(key=lambda pair: -(pair[1].lag or 0))
    header = ("partition", "group", "committed", "start", "end", "lag", "lost")
    rows = [
        (
            escaped(f"{each.commit.topic}-{each.commit.partition}"),
            escaped(group),
            *lag_cells(each),
        )
        for group, each in lags[:_MAX_LAG_ROWS]
    ]
    return f"<h3>Partitions with lag</h3>{table(header, rows)}" if rows else ""
