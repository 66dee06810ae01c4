"""kafka-python, aiokafka and confluent-kafka: what each does with records, offsets and times."""

import pytest

from tests.conformance.clients.client import CODECS, Client, Sent
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import by_length

pytestmark = pytest.mark.slow

START_MS = 1_700_000_000_000
EVERYTHING = (
    Sent(b"plain"),
    Sent(b"with a key", b"key"),
    Sent(None, b"tombstone"),
    Sent(b"", b""),
    Sent("Käfka ☕".encode(), "ключ".encode()),
    Sent(b"headers", headers=(("a", b"1"), ("a", b"2"), ("empty", b""), ("ü", b"\xff\x00"))),
    Sent(bytes(range(256)) * 400, b"binary"),
)


def numbered(count: int, partition: int = 0) -> list[Sent]:
    """Records 0, 1, ... of a partition, one second apart."""
    return [
        Sent(f"{partition}-{n}".encode(), b"k", partition, START_MS + n * 1000)
        for n in range(count)
    ]


@pytest.mark.parametrize("codec", by_length(["none"], CODECS))  # the others: test_codecs.py
def test_what_is_written_in_a_codec_is_read_back(
    client: Client, codec: str, broker: BrokerProcess, three_partitions: str
) -> None:
    sent = [
        record._replace(partition=partition, timestamp_ms=START_MS + n)
        for partition in range(3)
        for n, record in enumerate(EVERYTHING * 20)
    ]
    offsets = client.produce(broker.bootstrap, three_partitions, sent, codec=codec)
    assert offsets == [*range(140), *range(140), *range(140)]
    reader = client.reader(broker.bootstrap, three_partitions, [0, 1, 2])
    got = reader.read(len(sent))
    reader.close()
    got.sort()
    assert [record.as_sent() for record in got] == sent
    assert [record.offset for record in got] == offsets


@pytest.mark.parametrize("acks", by_length(["0"], ["0", "1", "all"]))
def test_every_kind_of_acknowledgement_delivers(
    client: Client, acks: str, broker: BrokerProcess, three_partitions: str
) -> None:
    sent = numbered(300)
    client.produce(broker.bootstrap, three_partitions, sent, acks=acks, idempotent=False)
    reader = client.reader(broker.bootstrap, three_partitions, [0])
    got = reader.read(len(sent))
    reader.close()
    # Not in order: a new topic's first batch may be refused and sent again behind the second.
    assert sorted(record.as_sent() for record in got) == sorted(sent)


def test_an_idempotent_producer_writes_each_record_once_and_in_order(
    client: Client, broker: BrokerProcess, three_partitions: str
) -> None:
    sent = numbered(2000)
    offsets = client.produce(broker.bootstrap, three_partitions, sent)
    assert offsets == list(range(2000))
    reader = client.reader(broker.bootstrap, three_partitions, [0])
    got = reader.read(2000)
    assert reader.beginning_and_end(0) == (0, 2000)
    reader.close()
    assert [record.as_sent() for record in got] == sent


def test_seek_reads_from_any_offset(
    client: Client, broker: BrokerProcess, three_partitions: str
) -> None:
    client.produce(broker.bootstrap, three_partitions, numbered(1000))
    reader = client.reader(broker.bootstrap, three_partitions, [0])
    for offset in (0, 1, 499, 999, 17):
        reader.seek(0, offset)
        assert reader.read(1)[0].offset == offset
        assert reader.position(0) == offset + 1
    reader.seek_to_beginning()
    assert reader.read(1)[0].offset == 0
    reader.seek_to_end()
    assert reader.position(0) == 1000
    client.produce(broker.bootstrap, three_partitions, [Sent(b"one more")])
    assert reader.read(1)[0].value == b"one more"
    reader.close()


def test_a_seek_beyond_the_end_starts_over_by_the_reset_policy(
    client: Client, broker: BrokerProcess, three_partitions: str
) -> None:
    client.produce(broker.bootstrap, three_partitions, numbered(10))
    reader = client.reader(broker.bootstrap, three_partitions, [0])
    reader.seek(0, 1_000_000)
    assert [record.offset for record in reader.read(10)] == list(range(10))
    reader.close()


def test_offsets_for_times_finds_the_first_record_that_is_not_older(
    client: Client, broker: BrokerProcess, three_partitions: str
) -> None:
    for partition in range(3):
        client.produce(broker.bootstrap, three_partitions, numbered(100, partition))
    reader = client.reader(broker.bootstrap, three_partitions, [0, 1, 2])
    find = reader.offsets_for_times
    assert find({0: START_MS, 1: START_MS + 1, 2: 0}) == {0: 0, 1: 1, 2: 0}
    assert find({0: START_MS + 50_000, 1: START_MS + 99_000}) == {0: 50, 1: 99}
    # librdkafka says "the end" where the others say "none": the answer on the wire is -1.
    assert find({0: START_MS + 99_001})[0] in {None, 100}
    reader.close()


def test_offsets_for_times_finds_records_inside_compressed_batches(
    client: Client, broker: BrokerProcess, three_partitions: str
) -> None:
    client.produce(broker.bootstrap, three_partitions, numbered(100), codec="gzip")
    reader = client.reader(broker.bootstrap, three_partitions, [0])
    assert reader.offsets_for_times({0: START_MS + 41_500}) == {0: 42}
    reader.close()


def test_beginning_and_end_follow_what_is_written(
    client: Client, broker: BrokerProcess, three_partitions: str
) -> None:
    reader = client.reader(broker.bootstrap, three_partitions, [0, 1])
    assert reader.beginning_and_end(1) == (0, 0)
    client.produce(broker.bootstrap, three_partitions, numbered(7, 1))
    assert reader.beginning_and_end(1) == (0, 7)
    assert reader.beginning_and_end(0) == (0, 0)
    reader.close()


def test_a_group_resumes_where_it_committed(
    client: Client, broker: BrokerProcess, three_partitions: str, group: str
) -> None:
    client.produce(broker.bootstrap, three_partitions, numbered(100))
    first = client.reader(broker.bootstrap, three_partitions, [0, 1], group)
    assert first.committed(0) is None
    assert len(first.read(40)) == 40
    first.commit(0, 40, "forty, ☕")
    assert first.committed(0) == (40, "forty, ☕")
    first.close()
    second = client.reader(broker.bootstrap, three_partitions, [0, 1], group)
    assert [record.offset for record in second.read(60)] == list(range(40, 100))
    second.commit(0, 100, "")
    assert second.committed(0) == (100, "")
    assert second.committed(1) is None
    second.close()


def test_a_topic_that_is_missing_is_made_by_writing_to_it(
    client: Client, broker: BrokerProcess, topic: str
) -> None:
    assert client.produce(broker.bootstrap, topic, [Sent(b"first"), Sent(b"second")]) == [0, 1]
    reader = client.reader(broker.bootstrap, topic, [0])
    assert [record.value for record in reader.read(2)] == [b"first", b"second"]
    reader.close()


def test_a_record_of_almost_the_largest_size_goes_through(
    client: Client, broker: BrokerProcess, three_partitions: str
) -> None:
    sent = [Sent(bytes([n]) * 999_000, timestamp_ms=START_MS) for n in range(5)]
    client.produce(broker.bootstrap, three_partitions, sent)
    reader = client.reader(broker.bootstrap, three_partitions, [0])
    assert [record.as_sent() for record in reader.read(5)] == sent
    reader.close()
