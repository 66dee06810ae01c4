"""A data directory with segments of magic 0 and 1, served by Apache Kafka and by odradek.

The messages are made by Kafka 3.9's own classes, the last that write them, and laid into the
directory behind a topic's back. Some partitions are cut somewhere, for both to recover.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.protocol.compression import CompressionType
from odradek.protocol.legacy import read_message_set
from odradek.protocol.message_set import LegacyRecord
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.record import Record
from tests.conformance.clients.client import Client, Sent
from tests.conformance.clients.confluent_client import ConfluentKafka
from tests.conformance.clients.kafka_python_client import KafkaPython
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import JAVA_TOOLS
from tests.support.kafka_legacy import LEGACY_CODECS, ask_kafka_39, build_line
from tests.support.lengths import only_long
from tests.support.old_logs import OldEntry, entries_in, modern, records_of
from tests.support.stored_batches import fetch, fetch_request
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("old formats are served and recovered in storage/test_old_formats.py"),
]

TOPIC = "aged"
START_MS = 1_400_000_000_000
MIXED, WITHOUT_TIMES, DATED = range(3)
WHOLE = (MIXED, WITHOUT_TIMES, DATED)
CUTS = range(3, 15)
SETTINGS = {"log.index.interval.bytes": "200", "log.retention.ms": "-1"}


# --- what lies there


class Plan(NamedTuple):
    """A message or wrapper to be made."""

    magic: int
    codec: CompressionType
    append_time_ms: int | None
    records: list[Record]

    def as_read(self) -> list[Record]:
        """The records with the times that a consumer gives them."""
        if self.magic == 0:
            return [record._replace(timestamp_ms=-1) for record in self.records]
        if self.append_time_ms is None:
            return self.records
        return [record._replace(timestamp_ms=self.append_time_ms) for record in self.records]


def plans(magics: Sequence[int], start: int = 0) -> Iterator[Plan]:
    """Single messages and wrappers of every codec, with gaps between some."""
    offset = start
    for magic in magics:
        for number in range(12):
            codec = LEGACY_CODECS[number % 4]
            count = 1 if codec is CompressionType.NONE else 1 + number
            stamp = START_MS + 1000 * offset + 999 if magic and number in (4, 7) else None
            yield Plan(magic, codec, stamp, [_record(offset + n) for n in range(count)])
            offset += count + (number % 5 == 4)


def made(*wanted: Iterable[Plan]) -> list[list[OldEntry]]:
    """Each as Kafka makes it."""
    lists = [list(each) for each in wanted]
    lines = [
        build_line(plan.records, plan.magic, plan.codec, plan.append_time_ms)
        for plan in chain(*lists)
    ]
    answers = iter(ask_kafka_39(lines))
    return [
        [OldEntry(bytes.fromhex(next(answers)), plan.as_read()) for plan in each] for each in lists
    ]


def _record(offset: int) -> Record:
    value = None if offset % 7 == 6 else b"value-%d-" % offset * (offset % 4)
    return Record(b"key-%d" % (offset % 9), value, START_MS + 1000 * offset - offset % 3 * 1500,
                  (), offset)  # fmt: skip


def partitions() -> dict[int, list[list[OldEntry]]]:
    """The segments of each partition."""
    old, dated, without_times = made(plans([0, 1]), plans([1, 1], 50), plans([0]))
    end = old[-1].next_offset
    new = [modern(end + 4 * n, 4, START_MS + 1000 * (end + 4 * n)) for n in range(6)]
    mixed = [*old, *new]
    found = {
        MIXED: [mixed[:7], mixed[7:16], mixed[16:26], mixed[26:]],
        WITHOUT_TIMES: [without_times],
        DATED: [dated[:10], dated[10:]],
    }
    for partition in CUTS:
        found[partition] = [mixed[partition : partition + 18]]
    return found


def lay_down(data: Path, segments: dict[int, list[list[OldEntry]]]) -> None:
    """Write them over what is there, and let it look like a crash."""
    for partition, parts in segments.items():
        directory = data / f"{TOPIC}-{partition}"
        for path in directory.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for entries in parts:
            content = b"".join(entry.data for entry in entries)
            if partition in CUTS:
                starts = list(accumulate(len(entry.data) for entry in entries))
                cut = starts[partition % 6 + 8] + (1, 11, 12, 17, 25, 26, 30)[partition % 7]
                content = content[:cut]
                if partition % 4 == 3:
                    content = content[:-1] + bytes([content[-1] ^ 4])
            (directory / f"{entries[0].base_offset:020d}.log").write_bytes(content)
    (data / ".kafka_cleanshutdown").unlink()


# --- what a client sees


def look(port: int) -> dict[str, Any]:
    """Offsets by time, and bytes from every offset, of all partitions."""
    with WireClient(port) as client:
        wait_until(lambda: all(found[0] == 0 for found in list_offsets(client, -1).values()))
        times = [-1, -2, -3, *range(START_MS - 1500, START_MS + 220_000, 9_100)]
        offsets = {time_ms: list_offsets(client, time_ms) for time_ms in times}
        ends = {partition: found[2] for partition, found in offsets[-1].items()}
        return {
            "offsets": offsets,
            "bytes": {p: b"".join(pieces(client, p, offsets[-2][p][2])) for p in ends},
            "first": {
                p: [fetch(client, TOPIC, p, offset, 1) for offset in range(offsets[-2][p][2], end)]
                for p, end in ends.items()
                if p in (MIXED, DATED)
            },
        }


def list_offsets(client: WireClient, time_ms: int) -> dict[int, tuple[int, ...]]:
    wanted = [ListOffsetsPartition(partition_index=p, timestamp=time_ms) for p in (*WHOLE, *CUTS)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=wanted)]
    )
    answer = client.ask(request, ListOffsetsResponse, 7).topics[0].partitions
    return {
        one.partition_index: (one.error_code, one.timestamp, one.offset)
        # How often a leader was elected is another matter; no old message has an epoch.
        + ((one.leader_epoch,) if time_ms != -1 else ())
        for one in sorted(answer, key=lambda one: one.partition_index)
    }


def pieces(client: WireClient, partition: int, offset: int) -> Iterator[bytes]:
    """All whole batches and messages from an offset on, fetch by fetch."""
    while data := fetch(client, TOPIC, partition, offset):
        yield data
        offset = entries_in(data)[-1][-1].offset + 1


def from_console(broker: BrokerProcess, partition: int, count: int) -> list[str]:
    """What Kafka's console consumer prints of the first records."""
    show = ("print.timestamp", "print.offset", "print.key")
    read = JAVA_TOOLS.run(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--partition", str(partition)),
        *("--from-beginning", "--max-messages", str(count), "--timeout-ms", "20000"),
        *(word for each in show for word in ("--formatter-property", f"{each}=true")),
    )
    return [line for line in read.splitlines() if "Offset:" in line]


def index_files(data: Path, partition: int) -> dict[str, bytes]:
    """Segments and indexes, as they were left."""
    directory = data / f"{TOPIC}-{partition}"
    suffixes = (".log", ".index", ".timeindex")
    return {p.name: p.read_bytes() for p in directory.iterdir() if p.suffix in suffixes}


def test_both_serve_and_recover_what_old_brokers_left(tmp_path: Path) -> None:
    segments = partitions()
    ours = SharedDirectory(tmp_path / "odradek", **SETTINGS)
    with ours.served_by("odradek", killed=False) as broker:
        create_topic(broker.bootstrap, TOPIC, len(segments))
    lay_down(ours.data, segments)
    shutil.copytree(tmp_path / "odradek", tmp_path / "kafka")
    theirs = SharedDirectory(tmp_path / "kafka", **SETTINGS)
    expected = {partition: records_of(chain(*parts)) for partition, parts in segments.items()}
    count = len(expected[MIXED])
    with theirs.served_by("kafka", killed=False) as broker:
        told_by_kafka = look(broker.port)
        printed = from_console(broker, MIXED, count)
        assert len(printed) == count
    with ours.served_by("odradek", killed=False) as broker:
        told = look(broker.port)
        for key, answers in told_by_kafka.items():
            for place, answer in answers.items():
                assert told[key][place] == answer, (key, place)
        assert from_console(broker, MIXED, count) == printed
        for partition in WHOLE:
            content = b"".join(entry.data for part in segments[partition] for entry in part)
            assert told["bytes"][partition] == content
            # librdkafka says 0 where there is no time.
            dated = [r._replace(timestamp_ms=max(r.timestamp_ms, 0)) for r in expected[partition]]
            assert read_by(ConfluentKafka(), broker, partition, expected) == dated
            check_old_fetches(broker.port, partition, expected[partition])
        # The others hold LZ4 of magic 0, for which it needs a package that it does not bring.
        assert read_by(KafkaPython(), broker, DATED, expected) == expected[DATED]
    for partition in segments:
        assert index_files(ours.data, partition) == index_files(theirs.data, partition)
    write_on_and_give_it_to_kafka(ours, expected)


def read_by(
    client: Client, broker: BrokerProcess, partition: int, expected: dict[int, list[Record]]
) -> list[Record]:
    with closing(client.reader(broker.bootstrap, TOPIC, [partition])) as reader:
        got = reader.read(len(expected[partition]))
    return [Record(one.key, one.value, one.timestamp_ms, (), one.offset) for one in got]


def check_old_fetches(port: int, partition: int, expected: list[Record]) -> None:
    """Fetch v1 and v3 give all of it in messages of magic 0, and of magic 0 and 1."""
    with WireClient(port) as client:
        for version, magic in ((1, 0), (3, 1)):
            found: list[LegacyRecord] = []
            offset = expected[0].offset
            while True:
                request = fetch_request(TOPIC, partition, offset, 1500)
                answer = client.ask(request, FetchResponse, version).responses[0].partitions[0]
                assert answer.error_code == 0
                records = list(read_message_set(bytes(answer.records or b"")))
                if not records:
                    break
                found += [record for record in records if record.offset >= offset]
                offset = found[-1].offset + 1
            assert all(record.magic <= magic for record in found)
            assert [(r.offset, r.key, r.value) for r in found] == [
                (r.offset, r.key, r.value) for r in expected
            ]
            times = [r.timestamp_ms if magic else -1 for r in expected]
            assert [record.timestamp_ms for record in found] == times


def write_on_and_give_it_to_kafka(
    shared: SharedDirectory, expected: dict[int, list[Record]]
) -> None:
    """What odradek appends to old segments is there for Kafka too."""
    sent = [Sent(b"new-%d" % n, b"k", MIXED) for n in range(10)]
    with shared.served_by("odradek", killed=True) as broker:
        ConfluentKafka().produce(broker.bootstrap, TOPIC, sent)
        told = look(broker.port)
    with shared.served_by("kafka", killed=False) as broker:
        again = look(broker.port)
        assert again["bytes"] == told["bytes"]
        assert again["first"] == told["first"]
    assert told["offsets"][-1][MIXED][2] == expected[MIXED][-1].offset + 1 + len(sent)
