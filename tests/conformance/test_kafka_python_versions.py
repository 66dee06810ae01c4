"""kafka-python, told that it talks to a Kafka of old: it then speaks that Kafka's versions.

(0, 8, 0) knows no commits. (0, 8, 1) commits in v0, which meant ZooKeeper: Kafka 3.9 without one
refuses it, odradek keeps it with the rest. Groups that rebalance begin with (0, 9). LZ4 in magic 0,
for Kafkas before 0.10, needs a package that kafka-python does not bring.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka import KafkaConsumer
from kafka.errors import UnsupportedCodecError, UnsupportedCompressionTypeError

from tests.conformance.clients.client import READ_SECONDS, Reader, Sent
from tests.conformance.clients.kafka_python_client import KafkaPython, Version
from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.lengths import by_length, only_long
from tests.support.stored_batches import stored_batches
from tests.support.topics import create_topic

START_MS = 1_700_000_000_000
VERSIONS: tuple[Version, ...] = (
    *((0, 8, 0), (0, 8, 1), (0, 8, 2), (0, 9), (0, 10, 0), (0, 10, 1), (0, 10, 2), (0, 11)),
    *((1, 0), (1, 1), (2, 0), (2, 1), (2, 4), (2, 8), (3, 3), (3, 9), (4, 0), (4, 3)),
)
WITH_TIMES, WITH_HEADERS = (0, 10), (0, 11)
JOINS_DIFFER: tuple[Version, ...] = by_length(
    ((0, 9),), ((0, 9), (0, 10, 1), (0, 11), (2, 0), (2, 4), (4, 3))
)
WITH_LZ4, WITH_ZSTD = (0, 10), (2, 1)
WITH_COMMITS = (0, 8, 2) if against_apache_kafka() else (0, 8, 1)
TODAY = KafkaPython()


def name_of(version: Version) -> str:
    return ".".join(map(str, version))


def parameter(version: Version) -> object:
    """One of each form of commits, groups and batches is asked in every run."""
    marks = [pytest.mark.slow] if version >= WITH_HEADERS else []
    if version not in ((0, 8, 1), (0, 9), (0, 10, 1), (0, 11), (4, 3)):
        marks.append(only_long("others of its form are asked"))
    return pytest.param(version, marks=marks, id=name_of(version))


@pytest.fixture(params=map(parameter, VERSIONS))
def version(request: pytest.FixtureRequest) -> Version:
    """Each of the versions in turn."""
    return request.param


@pytest.fixture
def told(version: Version) -> KafkaPython:
    """A client that was told the version."""
    return KafkaPython(version)


def since(version: Version, first: Version) -> None:
    """Skip a test of what came later."""
    if version < first:
        pytest.skip(f"came with {first}")


def codecs_of(version: Version) -> list[str]:
    """The codecs that a client of that version writes."""
    later = {"lz4": WITH_LZ4, "zstd": WITH_ZSTD}
    return [
        "none",
        "gzip",
        "snappy",
        *(codec for codec, first in later.items() if version >= first),
    ]


def numbered(count: int, version: Version) -> list[Sent]:
    """Records as that version can carry them, a second apart."""
    headers = (("number", b"one"), ("empty", b"")) if version >= WITH_HEADERS else ()
    return [
        Sent(f"value {n}".encode() * 9, b"key" if n % 3 else None, 0, START_MS + n * 1000, headers)
        for n in range(count)
    ]


def carried_by(version: Version, records: list[Sent]) -> list[Sent]:
    """What a client of that version sees of records."""
    if version < WITH_TIMES:
        records = [record._replace(timestamp_ms=None) for record in records]
    if version < WITH_HEADERS:
        records = [record._replace(headers=()) for record in records]
    return records


def read_all(client: KafkaPython, broker: BrokerProcess, topic: str, count: int) -> list[Sent]:
    reader = client.reader(broker.bootstrap, topic, [0])
    try:
        got = reader.read(count)
    finally:
        reader.close()
    assert [record.offset for record in got] == list(range(count))
    return [record.as_sent() for record in got]


def write_in_every_codec(
    client: KafkaPython, version: Version, broker: BrokerProcess, topic: str
) -> list[Sent]:
    """Ten records in each codec; all of them."""
    records = numbered(10, version)
    codecs = codecs_of(version)
    for codec in codecs:
        client.produce(
            broker.bootstrap, topic, records, codec=codec, idempotent=version >= WITH_HEADERS
        )
    return records * len(codecs)


def test_what_it_writes_it_reads_and_so_does_a_client_of_today(
    told: KafkaPython, version: Version, broker: BrokerProcess, topic: str
) -> None:
    create_topic(broker.bootstrap, topic)
    written = write_in_every_codec(told, version, broker, topic)
    assert read_all(told, broker, topic, len(written)) == carried_by(version, written)
    undated = -1 if version < WITH_TIMES else None
    assert read_all(TODAY, broker, topic, len(written)) == [
        record if undated is None else record._replace(timestamp_ms=undated) for record in written
    ]
    assert {batch.codec for batch in stored_batches(broker.port, topic)} == set(codecs_of(version))


def test_it_reads_what_a_client_of_today_wrote(
    told: KafkaPython, version: Version, broker: BrokerProcess, topic: str
) -> None:
    create_topic(broker.bootstrap, topic)
    written = []
    for codec in ("none", "gzip", "snappy", *(["lz4"] if version >= WITH_LZ4 else [])):
        written += numbered(10, WITH_HEADERS)
        TODAY.produce(broker.bootstrap, topic, written[-10:], codec=codec)
    assert read_all(told, broker, topic, len(written)) == carried_by(version, written)


def test_it_learns_that_zstd_is_not_for_it(
    told: KafkaPython, version: Version, broker: BrokerProcess, topic: str
) -> None:
    if version >= WITH_HEADERS:
        pytest.skip("it reads today's batches")
    create_topic(broker.bootstrap, topic)
    TODAY.produce(broker.bootstrap, topic, numbered(3, WITH_HEADERS), codec="zstd")
    reader = told.reader(broker.bootstrap, topic, [0])
    with pytest.raises((UnsupportedCompressionTypeError, UnsupportedCodecError)):
        reader.read(1)
    reader.close()


def test_it_seeks_and_knows_beginning_and_end(
    told: KafkaPython, broker: BrokerProcess, topic: str
) -> None:
    create_topic(broker.bootstrap, topic)
    TODAY.produce(broker.bootstrap, topic, numbered(50, WITH_HEADERS), codec="gzip")
    reader = told.reader(broker.bootstrap, topic, [0])
    assert reader.beginning_and_end(0) == (0, 50)
    for offset in (0, 17, 49, 3):
        reader.seek(0, offset)
        assert reader.read(1)[0].offset == offset
        assert reader.position(0) == offset + 1
    reader.seek_to_end()
    assert reader.position(0) == 50
    reader.seek_to_beginning()
    assert reader.position(0) == 0
    reader.close()


def test_it_looks_offsets_up_by_time(
    told: KafkaPython, version: Version, broker: BrokerProcess, topic: str
) -> None:
    since(version, (0, 10, 1))
    create_topic(broker.bootstrap, topic)
    written = write_in_every_codec(told, version, broker, topic)
    reader = told.reader(broker.bootstrap, topic, [0])
    assert reader.offsets_for_times({0: START_MS + 4500}) == {0: 5}
    assert reader.offsets_for_times({0: START_MS + 9001}) == {0: None}
    assert reader.beginning_and_end(0) == (0, len(written))
    reader.close()


def test_it_commits_and_resumes_and_today_sees_it(
    told: KafkaPython, version: Version, broker: BrokerProcess, topic: str, group: str
) -> None:
    since(version, WITH_COMMITS)
    create_topic(broker.bootstrap, topic)
    TODAY.produce(broker.bootstrap, topic, numbered(30, WITH_HEADERS))
    TODAY.reader(broker.bootstrap, topic, [0], group).close()
    first = told.reader(broker.bootstrap, topic, [0], group)
    assert first.committed(0) is None
    assert len(first.read(10)) == 10
    first.commit(0, 10, "ten, ☕")
    assert first.committed(0) == (10, "ten, ☕")
    first.close()
    assert resumed_at(TODAY.reader(broker.bootstrap, topic, [0], group), 20) == (10, "ten, ☕")
    second = told.reader(broker.bootstrap, topic, [0], group)
    assert resumed_at(second, 25) == (20, "20")
    assert resumed_at(TODAY.reader(broker.bootstrap, topic, [0], group), 30) == (25, "25")


def resumed_at(reader: Reader, commit: int) -> tuple[int, str] | None:
    """What was committed, where reading went on indeed; and commit anew."""
    found = reader.committed(0)
    assert found is not None
    assert reader.read(1)[0].offset == found[0]
    reader.commit(0, commit, str(commit))
    reader.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", JOINS_DIFFER, ids=name_of)
def test_its_groups_share_partitions_with_members_of_today(
    version: Version, broker: BrokerProcess, topic: str, group: str
) -> None:
    create_topic(broker.bootstrap, topic, 4)
    members = [
        KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            api_version=one,
            heartbeat_interval_ms=200,
        )
        for one in (version, None)
    ]
    shared = threading.Event()
    try:
        with ThreadPoolExecutor(len(members)) as pool:
            polling = [pool.submit(poll_until, shared, member) for member in members]
            wait_until_shared(members)
            shared.set()
            for future in polling:
                future.result()
    finally:
        shared.set()
        for member in members:
            member.close()


def poll_until(done: threading.Event, member: KafkaConsumer) -> None:
    """Poll, and long: kafka-python may forget a rebalance that ends behind the end of a poll."""
    while not done.is_set():
        member.poll(timeout_ms=3000)


def wait_until_shared(members: list[KafkaConsumer]) -> None:
    """Return when each of two members has two of the four partitions, and no two the same."""
    deadline = time.monotonic() + READ_SECONDS
    while True:
        assigned = [at for member in members for at in member.assignment()]
        if len(assigned) == len(set(assigned)) == 4:
            return
        assert time.monotonic() < deadline, assigned
        time.sleep(0.02)


@pytest.mark.skipif(against_apache_kafka(), reason="Kafka 3.9 refuses commits of v0")
def test_the_first_client_of_a_broker_may_commit_as_in_081(
    start_broker: Callable[..., BrokerProcess], topic: str
) -> None:
    """It never asks for a coordinator, and nobody else did: there is no __consumer_offsets yet."""
    broker = start_broker()
    create_topic(broker.bootstrap, topic)
    client = KafkaPython((0, 8, 1))
    client.produce(broker.bootstrap, topic, numbered(3, (0, 8, 1)), idempotent=False)
    reader = client.reader(broker.bootstrap, topic, [0], "first")
    reader.commit(0, 2, "two")
    assert reader.committed(0) == (2, "two")
    reader.close()
