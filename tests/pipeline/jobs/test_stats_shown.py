"""The output of stats: tables and JSON."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from odradek.pipeline.jobs.stats.group_log import Commit, Group
from odradek.pipeline.jobs.stats.job import StatsReport, StatsSettings, run_stats
from odradek.pipeline.jobs.stats.lag import GroupLag, PartitionLag
from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.protocol.compression import CompressionType
from odradek.tools.app import app
from odradek.tools.pipeline.stats_json import instant, show_json
from odradek.tools.pipeline.stats_report import show_report
from tests.support.archives import InThisProcess
from tests.support.dirty_logs import Writer
from tests.support.log_box import NOW_MS, LogBox

UNPRINTABLE = '<script>alert("x")</script>\x07\udc80&'


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
    here = PartitionLag(Commit(UNPRINTABLE, "orders", 0, 10, NOW_MS, "", None), OffsetBounds(5, 90))
    gone = PartitionLag(Commit(UNPRINTABLE, "other", 1, 10, -1, "", None), None)
    found.groups = [
        GroupLag(*Group(UNPRINTABLE, "classic", 2, "consumer"), [here, gone]),
        GroupLag(*Group("idle", "consumer", 0)),
    ]
    return found


def test_json_tells_all_of_it(report: StatsReport, capsys: pytest.CaptureFixture[str]) -> None:
    report.groups = report.groups[1:]
    assert show_json(report) == 0
    shown = json.loads(capsys.readouterr().out)
    [topic] = shown["topics"]
    assert topic["records"] == sum(each["records"] for each in topic["codecs"].values()) > 0
    assert topic["firstBatch"] <= topic["lastRecord"]
    assert set(topic["codecs"]) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert shown["groups"] == [
        {"group": "idle", "type": "consumer", "protocol": None, "members": 0, "lag": 0, "lost": 0,
         "lastCommit": None, "partitions": []}
    ]  # fmt: skip
    report.problems = ["x"]
    assert show_json(report) == 1
    assert instant(2**60) is None


def test_tables_tell_topics_and_groups(
    report: StatsReport, capsys: pytest.CaptureFixture[str]
) -> None:
    report.groups[0].group = "g"
    assert show_report(report, "counted") == 0
    out = capsys.readouterr().out
    assert re.search(r"orders +1 +[\d,]+ ", out)
    assert re.search(r"g: other-1 +10 +gone +gone +gone", out)
    assert re.search(r"g: orders-0 +10 +5 +90 +80", out)


def test_a_dry_run_says_what_would_be_read(data: Path, report: StatsReport) -> None:
    result = CliRunner().invoke(app, ["pipeline", "stats", "--path", str(data), "--dry-run"])
    assert result.exit_code == 0, result.output
    assert "orders" in result.stdout
    result = CliRunner().invoke(
        app, ["pipeline", "stats", "--path", str(data), "--dry-run", "--json"]
    )
    [topic] = json.loads(result.stdout)["topics"]
    [sums] = [each.sums for each in report.topics if each.topic == topic["topic"]]
    assert topic["partitions"] == 1
    assert topic["offsets"] == sums.records + sums.markers
    assert topic["logBytes"] > 1000


def test_wrong_usage_is_reported_before_anything_starts(tmp_path: Path) -> None:
    gone = CliRunner().invoke(app, ["pipeline", "stats", "--path", str(tmp_path / "gone")])
    assert gone.exit_code == 2
    result = CliRunner().invoke(app, ["pipeline", "stats", "--path", str(tmp_path), "--topic", "x"])
    assert result.exit_code == 1
    assert "no topic x" in result.stderr
