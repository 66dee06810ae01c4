"""The output of verify and stats: tables, JSON, and a page; and that Spark finds what we find."""

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from odradek.pipeline.jobs.stats.group_log import Commit, Group
from odradek.pipeline.jobs.stats.hour_stats import HOUR_MS
from odradek.pipeline.jobs.stats.job import StatsReport, StatsSettings, run_stats
from odradek.pipeline.jobs.stats.lag import GroupLag, PartitionLag
from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.protocol.compression import CompressionType
from odradek.tools.app import app
from odradek.tools.pipeline.stats_json import instant, show_json
from odradek.tools.pipeline.stats_page import Column, charts, draw, page
from odradek.tools.pipeline.stats_report import show_report
from tests.support.archives import InThisProcess
from tests.support.dirty_logs import Writer
from tests.support.log_box import NOW_MS, LogBox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MADE_AT = datetime(2026, 11, 21, tzinfo=UTC)
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
HOSTILE = '<script>alert("x")</script>\x07\udc80&'


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of several segments, hours and codecs."""
    root = tmp_path_factory.mktemp("data")
    log = LogBox(root, segment_bytes=3000, index_interval_bytes=200).open()
    Writer(1, codecs=tuple(CompressionType)).write(log, 150)
    log.close(NOW_MS)
    return root


@pytest.fixture
def report(data: Path) -> StatsReport:
    found = run_stats(InThisProcess(), StatsSettings(log_directories=[data]))
    here = PartitionLag(Commit(HOSTILE, "orders", 0, 10, NOW_MS, "", None), OffsetBounds(5, 90))
    gone = PartitionLag(Commit(HOSTILE, "other", 1, 10, -1, "", None), None)
    found.groups = [
        GroupLag(*Group(HOSTILE, "classic", 2, "consumer"), [here, gone]),
        GroupLag(*Group("idle", "consumer", 0)),
    ]
    return found


class Page(HTMLParser):
    """Its elements must be closed in the order in which they were opened."""

    EMPTY = frozenset({"meta", "line", "rect"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(report: StatsReport) -> None:
    report.topics[0].topic = HOSTILE
    report.problems = [HOSTILE]
    text = page(report, HOSTILE, MADE_AT)
    found = Page(text)
    assert found.open == []
    assert found.tags.count("svg") == 3
    assert "script" not in found.tags
    assert text.count("&lt;script&gt;") >= 5
    text.encode()
    assert "\x07" not in text
    assert re.findall(r'(?:src|href)="(?!#)', text) == []
    assert set(re.findall(r"https?://[^\"]*", text)) == NAMESPACES
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(svg)


def test_a_page_without_topics_is_valid(data: Path) -> None:
    assert Page(page(StatsReport(), str(data), MADE_AT)).open == []


def test_many_hours_are_drawn_together(report: StatsReport) -> None:
    topic = report.topics[0]
    number, hour = max(topic.hours.items(), key=lambda pair: pair[1].stored_bytes)
    topic.hours = {number: hour, number + 9999: hour}
    titles, drawn = zip(*charts(topic, topic.total), strict=True)
    assert titles[:2] == ("Records per 7 days", "Stored per 7 days, KiB")
    assert [each.count("<title>") for each in drawn[:2]] == [2, 2]
    topic.hours = {-1: hour}
    [only] = charts(topic, topic.total)
    assert only[0] == "Records by size"


def test_a_chart_shows_each_value_when_the_pointer_is_on_it() -> None:
    shown = [Column("a", 3, "three"), Column("b", 0, "none"), Column("c", 1e-9, "< 1 & 'x'")]
    drawn = ElementTree.fromstring(draw(shown, {}))
    assert [each.text for each in drawn.iter() if each.tag.endswith("title")] == [
        "three",
        "< 1 & 'x'",
    ]
    assert [each.text for each in drawn.iter() if each.text in ("a", "b", "c")] == ["a", "b", "c"]


def test_json_tells_all_of_it(report: StatsReport, capsys: pytest.CaptureFixture[str]) -> None:
    report.groups = report.groups[1:]
    assert show_json(report) == 0
    shown = json.loads(capsys.readouterr().out)
    [topic] = shown["topics"]
    assert topic["total"]["records"] == sum(hour["records"] for hour in topic["hours"]) > 0
    assert topic["hours"][0]["hour"].endswith(":00:00Z")
    assert set(topic["total"]["codecs"]) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert shown["groups"] == [
        {"group": "idle", "type": "consumer", "protocol": None, "members": 0, "lag": 0, "lost": 0,
         "lastCommit": None, "partitions": []}
    ]  # fmt: skip
    report.problems = ["x"]
    assert show_json(report) == 1
    assert instant(2**60) is None


def test_tables_tell_topics_hours_and_groups(
    report: StatsReport, capsys: pytest.CaptureFixture[str]
) -> None:
    report.groups[0].group = "g"
    assert show_report(report, "counted", hours=True) == 0
    out = capsys.readouterr().out
    assert "orders, by hour (UTC)" in out
    assert instant(NOW_MS // HOUR_MS * HOUR_MS)[:10] in out  # type: ignore[index]  # there is one
    assert re.search(r"g: other-1 +10 +gone +gone +gone", out)
    assert re.search(r"g: orders-0 +10 +5 +90 +80", out)


@pytest.mark.parametrize("job", ["verify", "stats"])
def test_a_dry_run_reads_no_batch_and_starts_no_spark(data: Path, job: str) -> None:
    result = CliRunner().invoke(app, ["pipeline", job, "--path", str(data), "--dry-run"])
    assert result.exit_code == 0, result.output
    assert "orders" in result.stdout
    result = CliRunner().invoke(app, ["pipeline", job, "--path", str(data), "--dry-run", "--json"])
    [topic] = json.loads(result.stdout)["topics"]
    assert topic["partitions"] == 1
    assert topic["logBytes"] > 1000


@pytest.mark.parametrize("job", ["verify", "stats"])
def test_wrong_usage_is_reported_before_anything_starts(tmp_path: Path, job: str) -> None:
    wrong = [["--path", str(tmp_path / "gone")], ["--path", str(tmp_path), "--conf", "x"]]
    if job == "stats":
        wrong.append(["--path", str(tmp_path), "--html", str(tmp_path / "gone" / "x.html")])
    for arguments in wrong:
        assert CliRunner().invoke(app, ["pipeline", job, *arguments]).exit_code == 2
    result = CliRunner().invoke(app, ["pipeline", job, "--path", str(tmp_path), "--topic", "x"])
    assert result.exit_code == 1
    assert "no topic x" in result.stderr


def test_spark_finds_what_one_process_finds(spark: "SparkSession", data: Path) -> None:
    from odradek.pipeline.jobs.spark_tasks import SparkTasks

    tasks = SparkTasks(spark)
    settings = StatsSettings(log_directories=[data])
    here, there = run_stats(InThisProcess(), settings), run_stats(tasks, settings)
    assert there.topics[0].total.sizes.counts.tolist() == here.topics[0].total.sizes.counts.tolist()
    assert there.topics[0].hours.keys() == here.topics[0].hours.keys()
