"""Records in the console: pages, filters, formats, what is new, one record, written, exported."""

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from odradek.protocol.compression import CompressionType
from odradek.storage.record_walk import LONG
from odradek.tools.client.record_json import parse_json
from tests.support.broker_process import against_apache_kafka, running
from tests.support.console_client import (
    CONSOLE,
    PREFIX,
    ConsoleBroker,
    ConsoleClient,
    console_broker,
)
from tests.support.hostile_batches import zeros
from tests.support.metrics import http_port, scrape
from tests.support.old_logs import aged_entries, lay_down, records_of
from tests.support.secured_broker import PASSWORD, SecuredBroker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache_kafka(), reason="odradek's own console"),
]

SETTINGS = {
    "odradek.registry.listener": "127.0.0.1:0",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "message.max.bytes": "20000000",
    "socket.request.max.bytes": "104857600",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    with console_broker(tmp_path_factory.mktemp("messages"), SETTINGS) as found:
        yield found


@pytest.fixture
def console(broker: ConsoleBroker) -> ConsoleClient:
    for topic in broker.console.get("/topics")["topics"]:
        broker.console.delete(f"/topics/{topic['name']}", {"confirm": topic["name"]})
    return broker.console


def create(broker: ConsoleBroker, name: str, partitions: int = 1, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": broker.process.bootstrap})
    (done,) = admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values()
    done.result()


def producer(broker: ConsoleBroker, **settings: object) -> Producer:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return Producer(
        {"bootstrap.servers": broker.process.bootstrap, "message.max.bytes": 20_000_000, **given}
    )


def send(
    broker: ConsoleBroker,
    topic: str,
    values: list[bytes | None],
    *,
    key: bytes | None = b"key",
    partition: int = 0,
    first_ms: int = 1_700_000_000_000,
    **settings: object,
) -> None:
    """Send records a millisecond apart, in as few batches as fit."""
    client = producer(broker, linger_ms=50, **settings)
    for number, value in enumerate(values):
        client.produce(topic, value, key, partition, timestamp=first_ms + number)
    assert client.flush(60) == 0


def numbers(first: int, end: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, end)]


def values(page: Any) -> list[str | None]:
    return [record["value"] and record["value"]["text"] for record in page["records"]]


def all_pages(console: ConsoleClient, topic: str, **query: object) -> list[Any]:
    """All pages, each with the cursor of the one before."""
    path = f"/topics/{topic}/messages"
    pages = [console.get(path, **query)]
    while pages[-1]["cursor"] is not None:
        assert len(pages) < 200
        pages.append(console.get(path, **{**query, "cursor": pages[-1]["cursor"]}))
    return pages


def all_values(console: ConsoleClient, topic: str, **query: object) -> list[str | None]:
    return [each for page in all_pages(console, topic, **query) for each in values(page)]


def test_pages_go_back_from_the_newest_record(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(broker, "numbers")
    send(broker, "numbers", numbers(0, 100))
    first = console.get("/topics/numbers/messages", limit=30)
    assert values(first) == [str(n) for n in range(99, 69, -1)]
    assert (first["searched"], first["total"]) == (30, 100)
    send(broker, "numbers", numbers(100, 110))  # does not come between two pages
    rest = console.get("/topics/numbers/messages", limit=100, cursor=first["cursor"])
    assert values(rest) == [str(n) for n in range(69, -1, -1)]
    assert (rest["cursor"], rest["searched"], rest["total"]) == (None, 100, 100)


def test_partitions_are_merged_by_time_in_both_directions(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(broker, "parts", 4)  # the last one stays empty
    for partition in range(3):
        times = 1_700_000_000_000 + 1000 * partition
        send(broker, "parts", numbers(0, 40), partition=partition, first_ms=times - 990 * partition)
    expected = sorted(
        (1_700_000_000_000 + 10 * partition + n, partition, n)
        for partition in range(3)
        for n in range(40)
    )

    def seen(position: str) -> list[tuple[int, int, int]]:
        pages = all_pages(console, "parts", position=position, limit=7)
        assert all(len(page["records"]) == 7 for page in pages[:-1])
        return [
            (record["timestampMs"], record["partition"], record["offset"])
            for page in pages
            for record in page["records"]
        ]

    oldest = seen("oldest")
    assert sorted(oldest) == expected
    assert [each[0] for each in oldest] == [each[0] for each in expected]
    newest = seen("newest")
    assert sorted(newest) == expected
    assert [each[0] for each in newest] == [each[0] for each in reversed(expected)]
    only = console.get("/topics/parts/messages", partition=1, limit=2)
    assert [(each["partition"], each["offset"]) for each in only["records"]] == [(1, 39), (1, 38)]


def test_a_page_begins_at_an_offset_or_a_time(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(broker, "begin")
    send(broker, "begin", numbers(0, 50))
    path = "/topics/begin/messages"
    assert values(console.get(path, position="offset", offset=45)) == ["45", "46", "47", "48", "49"]
    assert values(console.get(path, position="offset", offset=999)) == []
    at_ms = 1_700_000_000_047
    assert values(console.get(path, position="time", timestampMs=at_ms)) == ["47", "48", "49"]
    assert values(console.get(path, position="time", timestampMs=at_ms + 1000)) == []
    error = console.ask("GET", path, position="offset")
    assert error.error == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_codecs_are_read(broker: ConsoleBroker, console: ConsoleClient, codec: str) -> None:
    create(broker, "codecs")
    sent = [b"%d " % n * 20 for n in range(500)]
    send(broker, "codecs", sent, compression_type=codec)
    page = console.get("/topics/codecs/messages", limit=500)
    assert values(page) == [value.decode() for value in reversed(sent)]
    assert {record["compression"] for record in page["records"]} == {codec}


def test_a_filtered_search_says_how_far_it_is(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(broker, "haystack")
    filler = b"x" * 2000
    for start in range(0, 6000, 2000):
        batch = [filler + b" %d" % n for n in range(start, start + 2000)]
        batch[500] = b"the needle %d" % start
        send(broker, "haystack", batch)
    for position in ("newest", "oldest"):
        pages = all_pages(console, "haystack", position=position, value="needle")
        assert len(pages) > 2  # 12 MB are not searched at once
        searched = [page["searched"] for page in pages]
        assert searched == sorted(set(searched))
        assert searched[-1] == pages[-1]["total"] == 6000
        found = [each for page in pages for each in values(page)]
        assert sorted(found) == ["the needle 0", "the needle 2000", "the needle 4000"]


def test_filters_of_keys_headers_and_json(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "filters")
    client = producer(broker)
    for number in range(20):
        body = {"n": number, "who": {"name": f"user {number % 3}"}, "tags": ["a", f"t{number}"]}
        headers = [("trace", b"id-%d" % number), ("empty", None)]
        key = b"key-%d" % (number % 5)
        client.produce("filters", json.dumps(body).encode(), key, headers=headers)
    client.produce("filters", b"no json", None)
    client.produce("filters", None, b"key-tombstone")
    assert client.flush(30) == 0

    def found(**query: object) -> list[int]:
        pages = all_pages(console, "filters", position="oldest", **query)
        return [record["offset"] for page in pages for record in page["records"]]

    assert found(key="key-3") == [3, 8, 13, 18]
    assert found(key="key-t") == [21]
    assert found(value="user 2") == [2, 5, 8, 11, 14, 17]
    assert found(header="id-7") == [7]
    assert found(header="trace=id-1") == [1, *range(10, 20)]
    assert found(header="empty=x") == []
    assert len(found(header="empty")) == 20
    assert found(jsonPath="$.n=7") == [7]
    assert found(jsonPath="$.who.name=user 1", key="key-4") == [4, 19]
    assert found(jsonPath="$.tags[1]=t5") == [5]
    assert found(jsonPath="tags[*]=t6") == [6]
    assert found(jsonPath='$["who"].name=user 0', value='"n": 1') == [12, 15, 18]
    assert len(found(jsonPath="$.n")) == 20
    error = console.ask("GET", "/topics/filters/messages", jsonPath="$.a[x]")
    assert error.error == (400, "INVALID_REQUEST")


def test_a_record_of_10_mb(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "large", max_message_bytes="20000000")
    send(broker, "large", [b"small"])
    large = json.dumps({"text": "0123456789" * 1_000_000, "last": "end"}).encode()
    send(broker, "large", [large])
    send(broker, "large", [large], compression_type="gzip")
    pages = all_pages(console, "large")
    records = [record for page in pages for record in page["records"]]
    assert [each["offset"] for each in records] == [2, 1, 0]
    for record in records[:2]:
        value = record["value"]
        assert (value["sizeBytes"], value["isCut"], value["format"]) == (len(large), True, "json")
        assert value["text"] == large[: len(value["text"])].decode()
    pages = all_pages(console, "large", jsonPath="$.last=end")
    assert [each["offset"] for page in pages for each in page["records"]] == [2, 1]
    path = "/topics/large/partitions/0/messages/2"
    one = console.get(path)
    assert (one["wholeKey"], one["wholeValue"]) == (base64.b64encode(b"key").decode(), None)
    assert raw(console, f"{path}/value") == large
    assert raw(console, f"{path}/key") == b"key"
    lines = raw(console, "/topics/large/messages/export").splitlines()
    assert [json.loads(line)["value"].encode() for line in lines] == [b"small", large, large]


def raw(console: ConsoleClient, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    connection.request("GET", f"{PREFIX}{path}")
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status == 200, data
    return data


def test_tombstones_nulls_and_gaps_of_a_compacted_topic(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(
        broker,
        "compacted",
        cleanup_policy="compact",
        segment_bytes="1048576",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="1",
        segment_ms="100",
    )
    for _ in range(3):
        send(broker, "compacted", [b"old " * 1000] * 100, key=b"same")
    send(broker, "compacted", [b"a"], key=b"a")
    send(broker, "compacted", [None], key=b"b")
    for second in range(200):  # a new segment each
        later_ms = 1_700_000_001_000 + 1000 * second
        send(broker, "compacted", [b"last"], key=b"same", first_ms=later_ms)
        if len(offsets_of(console, position="oldest", limit=100)) < 100:
            break
    for _ in range(100):  # the cleaner may run between two searches
        offsets = offsets_of(console, position="oldest", limit=100)
        backwards = all_pages(console, "compacted", limit=2)
        if offsets_of(console, position="oldest", limit=100) == offsets:
            break
    assert len(offsets) < 100
    assert {300, 301} <= set(offsets)
    assert offsets == sorted(offsets)
    records = [each for page in backwards for each in page["records"]]
    assert [each["offset"] for each in records] == offsets[::-1]
    (tombstone,) = [each for each in records if each["offset"] == 301]
    assert (tombstone["value"], tombstone["key"]["text"]) == (None, "b")
    gone = console.ask("GET", "/topics/compacted/partitions/0/messages/5")
    assert gone.error == (404, "RESOURCE_NOT_FOUND")


def offsets_of(console: ConsoleClient, **query: object) -> list[int]:
    pages = all_pages(console, "compacted", **query)
    return [record["offset"] for page in pages for record in page["records"]]


def test_transactions_by_isolation(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "payments")
    client = producer(broker, transactional_id="payer")
    client.init_transactions(30)
    for number, ends in enumerate(("commit", "abort", "commit")):
        client.begin_transaction()
        client.produce("payments", b"%d" % number, b"k")
        client.flush(30)
        if ends == "commit":
            client.commit_transaction(30)
        else:
            client.abort_transaction(30)
    client.begin_transaction()
    client.produce("payments", b"open", b"k")
    client.flush(30)
    path = "/topics/payments/messages"
    for position, expected in (("oldest", ["0", "2"]), ("newest", ["2", "0"])):
        assert values(console.get(path, position=position)) == expected
    page = console.get(path, position="oldest", isolation="read_uncommitted")
    kinds = [(each["isControl"], each["value"]["text"]) for each in page["records"]]
    commit, abort = (
        json.dumps({"type": kind, "coordinatorEpoch": 0}, separators=(",", ":"))
        for kind in ("COMMIT", "ABORT")
    )
    assert kinds == [
        (False, "0"),
        (True, commit),
        (False, "1"),
        (True, abort),
        (False, "2"),
        (True, commit),
        (False, "open"),
    ]
    assert all(each["producerId"] >= 0 for each in page["records"])
    outcomes = [each["transaction"] for each in page["records"]]
    assert outcomes == [*["committed"] * 2, *["aborted"] * 2, *["committed"] * 2, "open"]
    lines = raw(console, f"{path}/export?isolation=read_uncommitted&limit=3").splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [0, 2, 4]  # control records are none
    one = console.get("/topics/payments/partitions/0/messages/2")["record"]
    assert one["transaction"] == "aborted"
    one = console.get("/topics/payments/partitions/0/messages/3")["record"]
    assert (one["isControl"], one["value"]["format"]) == (True, "internal")
    client.abort_transaction(30)


def test_log_append_time(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "stamped", message_timestamp_type="LogAppendTime")
    send(broker, "stamped", [b"v"], first_ms=1000)
    (record,) = console.get("/topics/stamped/messages")["records"]
    assert record["timestampType"] == "LOG_APPEND_TIME"
    assert record["timestampMs"] > 1_700_000_000_000
    create(broker, "created")
    send(broker, "created", [b"v"], first_ms=1000)
    (record,) = console.get("/topics/created/messages")["records"]
    assert (record["timestampType"], record["timestampMs"]) == ("CREATE_TIME", 1000)


def test_formats(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "formats")
    sent = [
        b'{"a": [1, null]}',
        "žluť".encode(),
        b"\xff\xfe",
        b"\x00\x00\x00\x00\x05\x01",
        b"",
        b"12",
    ]
    for value in sent:
        send(broker, "formats", [value], key=b"\x00\x01")

    def shown(name: str) -> list[tuple[str, str]]:
        page = console.get("/topics/formats/messages", position="oldest", format=name)
        return [(each["value"]["format"], each["value"]["text"]) for each in page["records"]]

    assert shown("auto") == [
        ("json", '{"a": [1, null]}'),
        ("text", "žluť"),
        ("hex", "fffe"),
        ("hex", "000000000501"),
        ("text", ""),
        ("text", "12"),
    ]
    assert shown("hex") == [("hex", value.hex()) for value in sent]
    assert [name for name, _ in shown("json")] == ["json", "text", "hex", "text", "text", "json"]
    page = console.get("/topics/formats/messages", format="avro")
    assert all(each["value"]["reason"] for each in page["records"])
    assert {each["key"]["format"] for each in page["records"]} == {"hex"}
    error = console.ask("GET", "/topics/formats/messages", format="xml")
    assert error.error == (400, "INVALID_REQUEST")


def test_produce_with_headers_tombstones_and_partitions(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(broker, "written", 7)
    client = producer(broker, partitioner="murmur2_random")
    keys = [b"", b"a", b"ab", b"abc", b"abcd", "klíč".encode(), bytes(range(256))]
    by_client: dict[bytes, int] = {}
    for key in keys:
        client.produce(
            "written",
            b"client",
            key,
            on_delivery=lambda _, done: by_client.update({done.key() or b"": done.partition()}),
        )
    assert client.flush(30) == 0
    for key in keys:
        body = {"keyBase64": base64.b64encode(key).decode(), "value": "console"}
        assert console.post("/topics/written/messages", body)["partition"] == by_client[key]
    headers = [
        {"name": "text", "value": "žluť"},
        {"name": "bytes", "valueBase64": "/w=="},
        {"name": "null"},
    ]
    body = {"key": "k", "isTombstone": True, "partition": 3, "headers": headers, "timestampMs": 77}
    done = console.post("/topics/written/messages", body)
    assert done["partition"] == 3
    consumer = Consumer({"bootstrap.servers": broker.process.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("written", 3, done["offset"])])
    (message,) = consumer.consume(1, 30)
    consumer.close()
    assert (message.key(), message.value(), message.timestamp()[1]) == (b"k", None, 77)
    assert message.headers() == [("text", "žluť".encode()), ("bytes", b"\xff"), ("null", None)]
    one = console.get(f"/topics/written/partitions/3/messages/{done['offset']}")
    assert [(each["name"], each["value"]) for each in one["wholeHeaders"]] == [
        ("text", base64.b64encode("žluť".encode()).decode()),
        ("bytes", "/w=="),
        ("null", None),
    ]
    turns = {
        console.post("/topics/written/messages", {"value": "v"})["partition"] for _ in range(7)
    }
    assert turns == set(range(7))
    for wrong in (
        {"key": "k"},
        {"value": "v", "isTombstone": True},
        {"value": "v", "valueBase64": "/w=="},
        {"valueBase64": "?"},
    ):
        answer = console.ask("POST", "/topics/written/messages", wrong)
        assert answer.error == (400, "INVALID_REQUEST"), wrong
    answer = console.ask("POST", "/topics/written/messages", {"value": "v", "partition": 7})
    assert answer.error == (404, "UNKNOWN_TOPIC_OR_PARTITION")


def test_a_record_that_is_written_counts_for_the_quota_of_its_user(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(broker, "metered")
    user = [{"type": "user", "name": "ANONYMOUS"}]
    console.put("/quotas", {"entity": user, "set": {"producer_byte_rate": 1e9}})
    try:
        console.post("/topics/metered/messages", {"value": "v" * 500_000})
        series = scrape(http_port(broker.process))
    finally:
        console.put("/quotas", {"entity": user, "remove": ["producer_byte_rate"]})
    rates = list(series.values("kafka_server_quota_byte_rate", resource="Produce"))
    assert len(rates) == 1
    assert rates[0] > 10_000, "over at most eleven seconds, and the time of this test"


def test_what_cannot_be_read_is_refused(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "known")
    send(broker, "known", [b"v"])
    unknown = (404, "UNKNOWN_TOPIC_OR_PARTITION")
    for path in ("messages", "messages/live", "messages/export", "partitions/0/messages/0"):
        assert console.ask("GET", f"/topics/missing/{path}").error == unknown
    assert console.ask("GET", "/topics/known/messages", partition=1).error == unknown
    assert "missing" not in [each["name"] for each in console.get("/topics")["topics"]]
    bad = (400, "INVALID_REQUEST")
    for query in ({"cursor": "AAAA"}, {"cursor": "é"}, {"limit": 0}, {"limit": 1001}):
        assert console.ask("GET", "/topics/known/messages", **query).error == bad, query
    assert console.ask("GET", "/topics/known/messages", position="up").status == 400
    assert console.ask("GET", "/topics/known/partitions/0/messages/1").error == (
        404,
        "RESOURCE_NOT_FOUND",
    )


def test_export_can_be_read_again(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "exported")
    send(broker, "exported", [*numbers(0, 600), b"\xff", None])
    lines = raw(console, "/topics/exported/messages/export").splitlines()
    assert [parse_json(line).value for line in lines] == [*numbers(0, 600), b"\xff", None]
    few = raw(console, "/topics/exported/messages/export?limit=3&value=59&position=newest")
    assert [json.loads(line)["offset"] for line in few.splitlines()] == [599, 598, 597]


class LiveStream:
    """The events of the live view."""

    def __init__(self, console: ConsoleClient, path: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=30)
        accepts = {"Accept": "text/event-stream"}
        self._connection.request("GET", f"{PREFIX}{path}", headers=accepts)
        self._answer = self._connection.getresponse()

    def next(self) -> Any:
        while True:
            line = self._answer.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                return json.loads(line[6:])

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


def test_live_records_come_once(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "news", 2)
    send(broker, "news", [b"old"])
    stream = LiveStream(console, "/topics/news/messages/live")
    assert stream.next()["records"] == []
    send(broker, "news", [b"1"], partition=1)
    assert values(stream.next()) == ["1"]
    send(broker, "news", [b"2"])
    event = stream.next()
    assert (values(event), event["skipped"]) == (["2"], 0)
    send(broker, "news", numbers(0, 1000))
    seen, skipped = [], 0
    while seen[-1:] != ["999"]:
        event = stream.next()
        assert len(event["records"]) <= 100
        seen += values(event)
        skipped += event["skipped"]
    assert len(seen) + skipped == 1000
    stream.close()
    stream = LiveStream(console, "/topics/news/messages/live?value=5&partition=0")
    stream.next()
    send(broker, "news", numbers(0, 20))
    found: list[str | None] = []
    while found[-1:] != ["15"]:
        found += values(stream.next())
    assert found == ["5", "15"]
    stream.close()


def test_a_live_view_goes_on_at_its_cursor_also_in_a_topic_that_was_created_again(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    path = "/topics/again/messages/live"
    create(broker, "again", 2)
    cursor = console.get(path)["cursor"]
    send(broker, "again", [b"1"], partition=1)
    assert values(console.get(path, cursor=cursor)) == ["1"]
    console.delete("/topics/again", {"confirm": "again"})
    create(broker, "again", 1)
    send(broker, "again", [b"2"])
    assert values(console.get(path, cursor=cursor)) == ["2"]


def test_internal_topics_are_shown_as_their_records(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(broker, "consumed")
    send(broker, "consumed", [b"v"])
    consumer = Consumer({"bootstrap.servers": broker.process.bootstrap, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("consumed", 0, 1)], asynchronous=False)
    consumer.close()
    pages = all_pages(console, "__consumer_offsets", jsonPath="$.data.offset=1", key="readers")
    (record,) = [record for page in pages for record in page["records"]]
    assert record["key"]["format"] == record["value"]["format"] == "internal"
    assert json.loads(record["key"]["text"])["data"]["group"] == "readers"


def test_old_message_sets_are_read(tmp_path: Path) -> None:
    entries = aged_entries(at_ms=1_700_000_000_000)
    with console_broker(tmp_path, {"log.retention.ms": "-1"}) as own:
        create(own, "aged")
        own.process.stop()
    for file in (tmp_path / "data" / "aged-0").glob("0*"):
        file.unlink()
    lay_down(tmp_path / "data" / "aged-0", entries)
    expected = records_of(entries)
    with console_broker(tmp_path, {"log.retention.ms": "-1"}) as own:
        pages = all_pages(own.console, "aged", limit=10)
        records = [record for page in pages for record in page["records"]]
        assert [each["offset"] for each in records] == [each.offset for each in reversed(expected)]
        for shown, record in zip(reversed(records), expected, strict=True):
            value = None if record.value is None else record.value.decode()
            assert (shown["value"] and shown["value"]["text"]) == value
            time_ms = None if record.timestamp_ms < 0 else record.timestamp_ms
            assert shown["timestampMs"] == time_ms
        forwards = all_pages(own.console, "aged", limit=9, position="oldest")
        offsets = [each["offset"] for page in forwards for each in page["records"]]
        assert sorted(offsets) == [each.offset for each in expected]


def test_a_batch_that_unpacks_to_too_much_is_left_out(
    broker: ConsoleBroker, console: ConsoleClient, tmp_path: Path
) -> None:
    with console_broker(tmp_path, {}) as own:
        create(own, "bomb")
        send(own, "bomb", [b"before"])
        own.process.stop()
        log = tmp_path / "data" / "bomb-0" / f"{0:020d}.log"
        bomb = bytearray(zeros(LONG.unpacked_bytes + 1, CompressionType.ZSTD))
        bomb[7] = 1  # its offset
        log.write_bytes(log.read_bytes() + bomb)
        own.process.start()
        own_console = ConsoleClient(http_port(own.process))
        page = own_console.get("/topics/bomb/messages")
        assert values(page) == ["before"]
        (left_out,) = page["unreadable"]
        assert (left_out["partition"], left_out["firstOffset"], left_out["lastOffset"]) == (0, 1, 1)
        assert "more than" in left_out["reason"]


def test_only_those_who_may_read_a_topic_see_its_records(tmp_path: Path) -> None:
    """To describe a topic is not enough, and to write to it is another right."""
    secured = SecuredBroker("odradek", tmp_path, tls=False)
    secured.process.settings |= CONSOLE
    with running(secured.process):
        admin = AdminClient({"bootstrap.servers": secured.plain_servers})
        topics = [NewTopic(name, 1, 1) for name in ("seen", "readable", "hidden")]
        for done in admin.create_topics(topics).values():
            done.result()
        for topic, operation in (("seen", AclOperation.DESCRIBE), ("readable", AclOperation.READ)):
            entry = AclBinding(
                ResourceType.TOPIC,
                topic,
                ResourcePatternType.LITERAL,
                "User:alice",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for done in admin.create_acls([entry]).values():
                done.result()
        port = http_port(secured.process)
        chief = ConsoleClient(port, "admin", PASSWORD)
        for topic in ("seen", "readable", "hidden"):
            assert chief.post(f"/topics/{topic}/messages", {"value": "v"})["offset"] == 0
        alice = ConsoleClient(port, "alice", "alice-secret")
        assert values(alice.get("/topics/readable/messages")) == ["v"]
        refused = (403, "TOPIC_AUTHORIZATION_FAILED")
        for topic in ("seen", "hidden", "absent"):
            for path in ("messages", "messages/export", "partitions/0/messages/0"):
                assert alice.ask("GET", f"/topics/{topic}/{path}").error == refused, (topic, path)
        assert alice.ask("POST", "/topics/readable/messages", {"value": "v"}).error == refused


def test_of_many_headers_the_first_are_shown(broker: ConsoleBroker, console: ConsoleClient) -> None:
    """A few kilobytes, compressed, made an answer of 96 MB."""
    create(broker, "headers")
    client = producer(broker, compression_type="gzip")
    for count in (3, 150_000):
        client.produce("headers", b"v", headers=[("h", b"")] * count)
        assert client.flush(60) == 0
    many, few = console.get("/topics/headers/messages")["records"]
    assert (len(few["headers"]), few["headerCount"], few["sizeBytes"]) == (3, 3, 4)
    assert 0 < len(many["headers"]) <= 200
    assert (many["headerCount"], many["sizeBytes"]) == (150_000, 150_001)
    (one,) = console.get("/topics/headers/messages", limit=1, header="h=")["records"]
    assert one["headerCount"] == 150_000
    large = console.get("/topics/headers/messages", limit=1000)["records"]
    assert len(large[0]["headers"]) < 50
    assert console.get("/topics/headers/messages", header="zzz")["records"] == []
    exported = raw(console, "/topics/headers/messages/export").splitlines()
    assert [len(parse_json(line).headers) for line in exported] == [3, 150_000]
    assert parse_json(exported[1]).headers[-1] == ("h", b"")


@pytest.mark.parametrize("position", ["oldest", "newest"])
def test_records_before_a_damaged_header_are_shown(
    broker: ConsoleBroker, console: ConsoleClient, position: str
) -> None:
    create(broker, "damaged")
    for number in range(50):
        console.post("/topics/damaged/messages", {"value": f"{number:02}", "partition": 0})
    log = broker.process.directory / "data" / "damaged-0" / f"{0:020d}.log"
    size = log.stat().st_size // 50
    with log.open("r+b") as file:
        file.seek(20 * size + 16)  # the magic of the twenty-first batch
        file.write(b"\x63")
    if position == "oldest":
        page = console.get("/topics/damaged/messages", position="oldest", limit=5)
        assert (values(page), page["unreadable"]) == (["00", "01", "02", "03", "04"], [])
    pages = all_pages(console, "damaged", position=position, limit=15)
    shown = {value for page in pages for value in values(page)}
    assert shown >= {f"{number:02}" for number in range(20)}
    assert any(
        each["firstOffset"] <= 20 <= each["lastOffset"]
        for page in pages
        for each in page["unreadable"]
    )
    assert console.get("/topics/damaged/partitions/0/messages/19")["record"]["offset"] == 19
    refused = console.ask("GET", "/topics/damaged/partitions/0/messages/20")
    assert refused.error[1] == "CORRUPT_MESSAGE"


def test_a_path_may_lead_deep(broker: ConsoleBroker, console: ConsoleClient) -> None:
    create(broker, "deep")
    send(broker, "deep", [b"[" * 900 + b"]" * 900, b"[[1]]"])
    found = console.get("/topics/deep/messages", jsonPath="$" + "[0]" * 100)
    assert [each["offset"] for each in found["records"]] == [0]
    assert values(console.get("/topics/deep/messages", jsonPath="$[0][0]=1")) == ["[[1]]"]
