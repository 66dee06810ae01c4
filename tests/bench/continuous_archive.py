"""Records that are archived while they are produced, by `odradek pipeline tables`.

What was produced when, and what each commit of the table has added, tell how old the oldest record
was that the table lacked, right before each commit.
"""

import json
import shutil
import signal
import statistics
import subprocess
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable

from tests.bench.figures import Figures
from tests.bench.spark_costs import CpuMeter
from tests.bench.spark_topics import PARTITIONS, writing
from tests.support.broker_process import SERVE, BrokerProcess
from tests.support.process_tree import PeakMemory
from tests.support.topics import create_topic

RECORDS = 10_000_000
PER_SECOND = 100_000
EVERY_S, MERGE_EVERY_S = "5", "60"
LIMIT_SECONDS = 120.0
TOPIC = "plain"


class Produced(NamedTuple):
    """So many records were there at a time, in seconds since 1970."""

    records: int
    at_s: float


def continuous_archive(scratch: Path, share: int) -> Figures:
    """10 M records of 200 bytes, archived while they are produced at 100,000 a second."""
    archive = scratch / "continuous-archive"
    broker = BrokerProcess(scratch / "continuous-broker").start()
    try:
        create_topic(broker.bootstrap, TOPIC, PARTITIONS)
        with _tables(broker, archive) as tables:
            meter, memory = CpuMeter([tables.pid]), PeakMemory(tables.pid)
            memory.start()
            produced = list(_produce(broker, RECORDS // share))
            committed = _await(archive, produced[-1].records)
            cpu_s = meter.end()
            tables.send_signal(signal.SIGTERM)
            tables.wait()
        log_bytes = sum(each.stat().st_size for each in broker.data.glob(f"{TOPIC}-*/*.log"))
        return _figures(archive, produced, committed) | {
            "cpu_s_per_GB": cpu_s / (log_bytes / 1e9),
            "log_GB": log_bytes / 1e9,
            "memory_MB": memory.bytes / 2**20,
        }
    finally:
        broker.stop()
        shutil.rmtree(archive, ignore_errors=True)
        shutil.rmtree(broker.directory)


def _tables(broker: BrokerProcess, archive: Path) -> "subprocess.Popen[bytes]":
    command = [SERVE[0], "pipeline", "tables", str(archive)]
    options = ["--path", str(broker.data), "--every", EVERY_S, "--merge-every", MERGE_EVERY_S]
    return subprocess.Popen([*command, *options])


def _produce(broker: BrokerProcess, records: int) -> Iterator[Produced]:
    """Write at an even rate; a client that is late writes faster."""
    began = time.monotonic()
    for written in writing(broker, TOPIC, records):
        yield Produced(written, time.time())
        time.sleep(max(0.0, began + written / PER_SECOND - time.monotonic()))


def _await(archive: Path, records: int) -> list[Produced]:
    """Wait until the table has all; returns how many records it had after each commit, and when."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        committed = list(_commits(archive))
        if committed and committed[-1].records == records:
            return committed
        assert time.monotonic() < deadline, f"the table lacks records: {committed[-1:]}"
        time.sleep(0.5)


def _commits(archive: Path) -> Iterator[Produced]:
    there = 0
    for entry in sorted((archive / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        added = [each["add"] for each in actions if "add" in each and each["add"]["dataChange"]]
        if added:
            there += sum(json.loads(each["stats"])["numRecords"] for each in added)
            [info] = [each["commitInfo"] for each in actions if "commitInfo" in each]
            yield Produced(there, info["timestamp"] / 1000)


def _figures(archive: Path, produced: list[Produced], committed: list[Produced]) -> Figures:
    counts = [each.records for each in produced]
    behind_s, before = [], 0
    for commit in committed:
        oldest = produced[min(bisect_right(counts, before), len(produced) - 1)]
        behind_s.append(commit.at_s - oldest.at_s)
        before = commit.records
    sizes = [
        each / 2**20
        for each in DeltaTable(str(archive)).get_add_actions()["size_bytes"].to_pylist()
    ]
    return {
        "records": float(counts[-1]),
        "behind_median_s": statistics.median(behind_s),
        "behind_most_s": max(behind_s),
        "commits": float(len(committed)),
        "files": float(len(sizes)),
        "file_median_MB": statistics.median(sizes),
        "archive_GB": sum(sizes) * 2**20 / 1e9,
    }


WORKLOADS = {"continuous_archive": continuous_archive}
