"""Streams that fail, are killed and change at each start write each row once, or refuse loudly.

Each of four queries copies into a topic: from topics through their broker, from the same topics by
their files, from a compacted topic, and from files of text with Spark's own source. A round starts
them with other cores and options. Tasks fail in it, Python workers, executors and the broker are
killed; topics get more partitions, and a pattern more topics; a topic is deleted and created again.
At its end, the whole of Spark is killed. A query that refuses to go on is started again as its
error says, and must then go on. What is in the copies is compared with what was written.

What is chosen follows from the seed (ODRADEK_TEST_SEED). What happens when does not.
"""

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.session import why_no_spark
from tests.support.broker_process import BrokerProcess
from tests.support.changing_program import QuerySettings
from tests.support.changing_streams import (
    EXECUTOR,
    LIMIT_SECONDS,
    WORKER,
    Copies,
    Extras,
    Lines,
    Refusal,
    Streams,
    kill_one,
    refusal_of,
)
from tests.support.compaction import LOOKS_SOON
from tests.support.killed_stream import Producing
from tests.support.lengths import LONG, MINUTES, SEED
from tests.support.spark_cluster import SparkCluster
from tests.support.spark_versions import needs_limits
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

# Of a query that reads all that is left: perhaps a thousand files, each in a task of its own.
END_SECONDS = 1_800
# It refuses once for each topic that was deleted, and a busy machine may be too slow for Spark.
ENDS = 12

_logger = logging.getLogger(__name__)

BROKER, FILES, COMPACTED, LINES = "broker", "files", "compacted", "lines"
QUERIES = (BROKER, FILES, COMPACTED, LINES)
KEYS = 50
SMALL = {"internal.segment.bytes": "50000", "index.interval.bytes": "500"}
CLEANED = {
    **SMALL,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "10000",
}
# What a refused query is started with, as its error says; whether it is an option of the source.
WAYS_OUT = {
    Refusal.DIVISION: (False, "repeatableTasks", "true"),
    Refusal.LOST_ROWS: (False, "changedRows", "keep-written"),
    Refusal.TOPIC: (True, "failOnDataLoss", "false"),
}


class Refused(NamedTuple):
    """Why a query goes no further, and the text of its error."""

    why: Refusal
    text: str


class Setup(NamedTuple):
    """What a round is started with: each of the queries several times."""

    master: str
    queries: Mapping[str, list[QuerySettings]]


class Changing:
    """The streams, what they read and write, and what has been done to them."""

    def __init__(
        self, broker: BrokerProcess, cluster: SparkCluster, root: Path, prefix: str
    ) -> None:
        self.rng = random.Random(SEED)
        self.broker, self.cluster = broker, cluster
        self.counts: Counter[str] = Counter()
        self.plain, self.compacted = f"{prefix}-plain", f"{prefix}-compacted"
        self.targets = {name: f"{prefix}-copy-{name}" for name in QUERIES}
        create_topic(broker.bootstrap, self.plain, 2, SMALL)
        create_topic(broker.bootstrap, self.compacted, 2, CLEANED)
        for target in self.targets.values():
            create_topic(broker.bootstrap, target, 2)
        self.records = Producing(broker, self.plain, every_s=0.15)
        self.keyed = Producing(broker, self.compacted, keys=KEYS, every_s=0.15)
        self.lines = Lines(root / "in")
        self.extras = Extras(broker, f"{prefix}-extra-")
        self.pattern = f"{prefix}-(plain|extra-.*)"
        self.streams = Streams(root)
        self.copies = Copies(broker, self.targets.values())
        # Of each query: what it was started with since a batch of it was done and no other begun.
        self.starts: dict[str, list[tuple[str, QuerySettings]]] = {name: [] for name in QUERIES}
        # Of each query: records of deleted topics whose loss it has reported.
        self.lost: dict[str, set[bytes]] = {name: set() for name in QUERIES}
        self.broker_was_killed = False

    # -- what a round is started with --------------------------------------------------------------

    def choose(self, names: Iterable[str], fail: int = 0, starts: int = 1) -> Setup:
        """Choose cores and options for queries of which so many of a thousand tasks fail."""
        masters = ["local[1]", "local[2]", "local[4]", "local[2,4]", "local[4,4]"]
        master = self.rng.choice([*masters, self.cluster.master])
        return Setup(
            master, {name: [self.query(name, fail) for _ in range(starts)] for name in names}
        )

    def query(self, name: str, fail: int) -> QuerySettings:
        """Choose the options of a start."""
        rng = self.rng
        sink = {
            "kafka.bootstrap.servers": self.broker.bootstrap,
            "kafka.transaction.timeout.ms": "30000",
            "repeatTimeout": "4s",
            "sendColumns": rng.choice(["true", "false"]),
        }
        if name != COMPACTED:
            sink["topic"] = self.targets[name]
        common = {
            "sink": sink,
            "topic": self.targets[name] if name == COMPACTED else "",
            # The files are divided by both. Otherwise the number of cores counts that a cluster has
            # at the moment, which nobody can repeat.
            "conf": {
                "spark.sql.files.maxPartitionBytes": rng.choice(["128m", "500", "2000"]),
                "spark.sql.files.minPartitionNum": str(rng.choice([1, 2, 4])),
            },
            "fail": fail,
            "stop_after_s": rng.uniform(1, 8),
        }
        if name == LINES:
            at_most = rng.choice(["5", "20", "100"])
            source = {"path": str(self.lines.directory), "maxFilesPerTrigger": at_most}
            return {**common, "format": "text", "source": source}
        sink["repeatableTasks"] = rng.choice(["true", "false"])
        offsets = rng.choice([100, 500, 3000])
        source = {
            "path": str(self.broker.data),
            "kafka.bootstrap.servers": self.broker.bootstrap,
            "mode": rng.choice([FILES, BROKER]) if name == COMPACTED else name,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(offsets),
        }
        if name == COMPACTED:
            source["subscribe"] = self.compacted
        else:
            source["subscribePattern"] = self.pattern
        if rng.random() < 0.7:
            source["maxRecordsPerPartition"] = str(offsets // rng.choice([1, 2, 4]))
        if rng.random() < 0.3:
            source["minPartitions"] = rng.choice(["2", "4", "7"])
        return {**common, "format": "odradek", "source": source}

    # -- a round -----------------------------------------------------------------------------------

    def round(self) -> None:
        """Start some queries, harm them, kill them, and let those go on that have refused to."""
        names = self.rng.sample(QUERIES, self.rng.randint(2, len(QUERIES)))
        setup = self.choose(names, self.rng.choice([0, 100, 300]), self.rng.randint(1, 3))
        forget = [name for name in names if not self.is_unfinished(name)]
        planned, done = self.planned(), self.done() + self.rng.choice([0, 1, 1, 2])
        self.broker_was_killed = False
        with self.streams.running(setup.master, setup.queries) as process:
            deadline = time.monotonic() + LIMIT_SECONDS
            while not self.have_ended(setup) and not (
                self.done() >= done and self.planned() > planned and self.are_at_last(setup)
            ):
                assert process.poll() is None, self.streams.log_text()
                assert time.monotonic() < deadline, self.streams.log_text()
                time.sleep(0.02)
            for _ in range(self.rng.randrange(4)):
                time.sleep(self.rng.uniform(0, 2))
                self.harm(process.pid)
            time.sleep(self.rng.uniform(0, 4))
            assert process.poll() is None, self.streams.log_text()
        self.counts["round"] += 1
        self.counts["unfinished batch"] += sum(map(self.is_unfinished, QUERIES))
        for name in forget:
            self.starts[name].clear()
        for name in names:
            begun = setup.queries[name][: self.streams.starts(name)]
            self.counts["start"] += len(begun)
            self.starts[name] += [(setup.master, each) for each in begun]
            self.settle(name, len(begun) - 1)
        self.copies.read()

    def harm(self, pid: int) -> None:
        """Kill something, or change the topics."""
        match self.rng.randrange(6):
            case 0:
                kill_one([pid, *self.cluster.pids], WORKER, self.rng)
            case 1:
                kill_one(self.cluster.pids, EXECUTOR, self.rng)
            case 2:
                self.counts["broker killed"] += 1
                self.broker_was_killed = True
                self.broker.kill()
                time.sleep(self.rng.uniform(0, 2))
                self.broker.start()
            case _:
                self.change_topics()

    def change_topics(self) -> None:
        """Write to the extra topics, create one, or create one again; or let the plain one grow."""
        if self.rng.random() < 0.3 and self.records.partitions < 4:
            self.records.grow(self.records.partitions + 1)
        elif len(self.extras.there) < 2:
            self.extras.create()
        elif (topic := self.rng.choice(sorted(self.extras.there))) and self.may_be_deleted(topic):
            self.counts["topic created again"] += 1
            self.extras.create_again(topic)
        else:
            self.extras.write(topic, 20)

    def may_be_deleted(self, topic: str) -> bool:
        """Whether both queries have seen it, and know of all topics that were deleted before."""
        gone = set[bytes]().union(*self.extras.deleted.values())
        return all(
            topic in self.streams.last_offsets(name) and gone <= self.lost[name]
            for name in (BROKER, FILES)
        )

    # -- queries that go no further ----------------------------------------------------------------

    def settle(self, name: str, last_start: int) -> None:
        """Let a query go on that refuses to. Raises AssertionError for other errors."""
        errors = self.streams.errors(name)
        refusals = {start: self.refusal(name, text) for start, text in errors.items()}
        refusal = refusals.get(last_start)
        if name == LINES and refusal is not None:
            self.go_on_as_before(name)
        elif refusal in WAYS_OUT:
            self.go_on_as_said(name, refusal)

    def refusal(self, name: str, text: str) -> Refusal | None:
        refusal = refusal_of(text, broker_was_killed=self.broker_was_killed)
        self.counts[f"{name}: {refusal.name if refusal else 'failed'}"] += 1
        _logger.info("%s: %s", name, refusal or text[:200])
        if refusal is Refusal.TOPIC:
            named = [topic for topic in self.extras.deleted if topic in text]
            assert named, f"{name}: no topic was deleted:\n{text}"
            for topic in named:
                self.lost[name] |= self.extras.deleted[topic]
        may_lose = name == COMPACTED or bool(self.lost[name])
        assert refusal is not Refusal.LOST_ROWS or may_lose or name == LINES, f"{name}:\n{text}"
        assert refusal is not Refusal.ROWS or name == LINES, f"{name}:\n{text}"
        return refusal

    def go_on_as_before(self, name: str) -> None:
        """Start it as it was started when the batch was begun: not as it was at last."""
        *earlier, last = self.starts[name]
        tried: list[tuple[str, QuerySettings, str]] = []
        for master, settings in [*reversed(earlier), last]:
            refused = self.run_alone(name, master, settings)
            if refused is None:
                return
            tried.append((master, settings, refused.text))
            assert refused.why in (Refusal.DIVISION, Refusal.ROWS, Refusal.LOST_ROWS)
        pytest.fail(f"{name} does not go on as it was: {tried}")

    def go_on_as_said(self, name: str, refusal: Refusal) -> None:
        """Start it with other cores and options, and with the option that the error names."""
        options = [WAYS_OUT[refusal]]
        setup = self.choose([name])
        master, (settings,) = setup.master, setup.queries[name]
        while True:
            for of_source, option, value in options:
                (settings["source"] if of_source else settings["sink"])[option] = value
            again = self.run_alone(name, master, settings)
            if again is None:
                return
            assert again.why in WAYS_OUT, f"{name} {settings}: {again.text}"
            way = WAYS_OUT[again.why]
            assert way not in options, f"{name}: no way out: {settings}:\n{again.text}"
            options.append(way)

    def run_alone(self, name: str, master: str, settings: QuerySettings) -> Refused | None:
        """Run one query until its batch is done, or it refuses to go on.

        It is started again if it fails: a busy machine may be too slow for Spark.
        """
        for _ in range(5):
            text = self.run_once(name, master, settings)
            if text is None:
                return None
            refusal = self.refusal(name, text)
            if refusal is not None:
                return Refused(refusal, text)
        pytest.fail(f"{name} fails again and again: {text}")

    def run_once(self, name: str, master: str, settings: QuerySettings) -> str | None:
        """Run one query until its batch is done; return the text of its error, if any."""
        wanted = self.streams.finished(name) + 1
        alone: QuerySettings = {**settings, "fail": 0}
        with self.streams.running(master, {name: [alone]}) as process:
            deadline = time.monotonic() + LIMIT_SECONDS
            while self.streams.finished(name) < wanted and not self.streams.errors(name):
                assert process.poll() is None, self.streams.log_text()
                assert time.monotonic() < deadline, self.streams.log_text()
                time.sleep(0.05)
        return self.streams.errors(name).get(0)

    def finish(self) -> None:
        """Let all queries read what is there."""
        self.broker_was_killed = False
        for name in QUERIES:
            for _ in range(ENDS):
                if self.has_read_all(name):
                    break
            else:
                pytest.fail(f"{name} does not come to an end")

    def has_read_all(self, name: str) -> bool:
        """Run a query to the end of what is there. If it refuses to, let it go on."""
        setup = self.choose([name])
        (settings,) = setup.queries[name]
        if name == LINES:
            settings["source"]["maxFilesPerTrigger"] = "10000"
            # All files that are left, in a few tasks.
            settings["conf"]["spark.sql.files.maxPartitionBytes"] = "128m"
            settings["conf"]["spark.sql.files.openCostInBytes"] = "0"
        else:
            settings["source"]["maxOffsetsPerTrigger"] = "50000"
            settings["source"]["maxRecordsPerPartition"] = "50000"
        if not self.is_unfinished(name):
            self.starts[name].clear()
        self.starts[name].append((setup.master, settings))
        with self.streams.running(setup.master, setup.queries, ends=True) as process:
            assert process.wait(END_SECONDS) == 0, self.streams.log_text()
        has_failed = bool(self.streams.errors(name))
        self.settle(name, 0)
        return not has_failed

    # -- what is known of the queries --------------------------------------------------------------

    def is_unfinished(self, name: str) -> bool:
        return self.streams.begun(name) > self.streams.finished(name)

    def planned(self) -> int:
        """How many batches all queries have begun."""
        return sum(map(self.streams.begun, QUERIES))

    def done(self) -> int:
        return sum(map(self.streams.finished, QUERIES))

    def are_at_last(self, setup: Setup) -> bool:
        """Whether all queries have been started for the last time."""
        return all(self.streams.starts(name) == len(each) for name, each in setup.queries.items())

    def have_ended(self, setup: Setup) -> bool:
        """Whether all queries have ended with errors in their last start."""
        return all(
            len(each) - 1 in self.streams.errors(name) for name, each in setup.queries.items()
        )

    def check(self) -> None:
        """Compare what is in the copies with what was written."""
        self.copies.read_all()
        found = {name: self.copies.found[self.targets[name]] for name in QUERIES}
        records = {value for _, _, value in self.records.acknowledged}
        records |= set[bytes]().union(*self.extras.there.values())
        gone = set[bytes]().union(*self.extras.deleted.values())
        for name in (BROKER, FILES):
            check_same(name, found[name], records | (gone - self.lost[name]), records | gone)
        keyed = {value for _, _, value in self.keyed.acknowledged}
        check_same(COMPACTED, found[COMPACTED], set(self.keyed.newest.values()), keyed)
        lines = set(self.lines.written)
        check_same(LINES, found[LINES], lines, lines)


def check_same(name: str, found: set[bytes], least: set[bytes], most: set[bytes]) -> None:
    assert len(least) >= KEYS
    lost, unknown = sorted(least - found), sorted(found - most)
    assert not lost, f"{name} has lost {len(lost)} values: {lost[:20]}"
    assert not unknown, f"{name} has {len(unknown)} values of nobody: {unknown[:20]}"


@needs_limits
@pytest.mark.skipif(not LONG, reason="long only: a round takes half a minute")
def test_each_row_is_written_once_or_the_query_refuses(
    start_broker: Callable[..., BrokerProcess], topic: str, tmp_path: Path
) -> None:
    reason = why_no_spark()
    if reason:
        pytest.skip(reason)
    ends_at = time.monotonic() + 60 * MINUTES
    for each in ("cluster", "streams"):
        (tmp_path / each).mkdir()
    broker = start_broker(**LOOKS_SOON)
    with SparkCluster(tmp_path / "cluster") as cluster:
        changing = Changing(broker, cluster, tmp_path / "streams", topic)
        with changing.records, changing.keyed, changing.lines:
            while time.monotonic() < ends_at:
                changing.round()
                _logger.info("%s", dict(changing.counts))
        changing.finish()
        changing.check()
    assert changing.counts["unfinished batch"]
