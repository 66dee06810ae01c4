"""Fetch v0-3: batches of today as message sets, from any offset, in any room."""

from odradek.protocol.compression import CompressionType
from odradek.protocol.messages.fetch import FetchRequest
from tests.conformance.legacy.requests import (
    MODERN,
    OLD_FETCH,
    fetch,
    fetch_in_every_version,
    produce,
    set_of,
)
from tests.conformance.legacy.talk import LegacyTalk
from tests.conformance.requests import batch_of, fetch_request


def batches_are_read_as_message_sets(talk: LegacyTalk) -> None:
    """Batches of three records with headers: offsets 0-2, 3-5, ... one for each codec."""
    talk.modern.create_topic("batches")
    for codec in CompressionType:
        if codec != CompressionType.ZSTD:
            batch = bytes(batch_of("one", "two", "three", compression=codec))
            produce(talk, f"a batch in {codec.name}", "batches", batch, MODERN)
    for offset in range(14):
        for version in OLD_FETCH:
            fetch(talk, "batches", "batches", offset, version)


def zstd_is_not_for_old_clients(talk: LegacyTalk) -> None:
    talk.modern.create_topic("zstd")
    produce(talk, "none", "zstd", bytes(batch_of("one", "two")), MODERN)
    zstd = bytes(batch_of("three", "four", compression=CompressionType.ZSTD))
    produce(talk, "zstd", "zstd", zstd, MODERN)
    produce(talk, "none", "zstd", bytes(batch_of("five")), MODERN)
    for offset in range(6):
        for version in (*OLD_FETCH, 4, 9, 10):
            fetch(talk, "zstd", "zstd", offset, version)
    for version in OLD_FETCH:
        fetch(talk, "only the first", "zstd", 0, version, max_bytes=10)


def producers_and_their_markers_are_left_out(talk: LegacyTalk) -> None:
    """An idempotent producer's batch, and one without times."""
    talk.modern.create_topic("producers")
    producer = talk.modern.new_producer_id()
    produce(
        talk, "idempotent", "producers", bytes(batch_of("a", producer=(producer, 0, 0))), MODERN
    )
    produce(talk, "no times", "producers", bytes(batch_of("b", at_ms=-1)), MODERN)
    produce(talk, "no key", "producers", bytes(batch_of("c", key=None)), MODERN)
    fetch_in_every_version(talk, "producers", "producers")


def reads_are_refused_or_empty(talk: LegacyTalk) -> None:
    talk.modern.create_topic("reading", 2)
    produce(talk, "two records", "reading", bytes(batch_of("one", "two")), MODERN)
    for version in OLD_FETCH:
        for offset in (2, 3, -1, -2, 1 << 40):
            fetch(talk, "outside", "reading", offset, version)
        fetch(talk, "empty", "reading", 0, version, partition=1)
        fetch(talk, "empty", "reading", 1, version, partition=1)
        fetch(talk, "no such partition", "reading", 0, version, partition=7)
        fetch(talk, "no such topic", "reading-never", 0, version)
        fetch(talk, "an illegal topic", "not legal", 0, version)
        request = fetch_request("reading", 0, partitions=(0, 1, 2, 0))
        talk.ask(f"several partitions, v{version}", request, version)
        nothing = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[])
        talk.ask(f"nothing, v{version}", nothing, version)


def reads_keep_to_their_limits(talk: LegacyTalk) -> None:
    """Batches of 1068 bytes, messages of 1037 and 1029 bytes."""
    talk.modern.create_topic("limited", 2)
    talk.modern.create_topic("limited-gzip")
    for letter in "abc":
        batch = bytes(batch_of(letter * 100))
        produce(talk, letter, "limited", batch, MODERN)
        produce(talk, letter, "limited", batch, MODERN, partition=1)
        gzip = bytes(batch_of(letter * 100, letter, compression=CompressionType.GZIP))
        produce(talk, letter, "limited-gzip", gzip, MODERN)
    for max_bytes in (0, 1, 11, 12, 17, 60, 100, 128, 129, 136, 137, 200, 350, 600, -1):
        for version in OLD_FETCH:
            title = f"in {max_bytes} bytes"
            fetch(talk, title, "limited", 0, version, max_bytes=max_bytes)
            fetch(talk, f"{title}, gzip", "limited-gzip", 1, version, max_bytes=max_bytes)
            both = fetch_request("limited", 0, partitions=(0, 1), max_bytes=max_bytes)
            talk.ask(f"{title}, two partitions, v{version}", both, version)
        whole = fetch_request("limited", 0, partitions=(1, 0), total_bytes=max_bytes)
        talk.ask(f"{title} in all", whole, 3)


def sets_are_read_from_any_offset_and_in_any_room(talk: LegacyTalk) -> None:
    for magic in (0, 1):
        topic = f"seeking-{magic}"
        talk.modern.create_topic(topic)
        for codec in ("none", "gzip", "snappy", "lz4"):
            produce(talk, f"magic {magic}, {codec}", topic, set_of(magic, codec), 2)
        for offset in range(12):
            for version in (0, 2):
                fetch(talk, f"magic {magic}", topic, offset, version)
        for max_bytes in (1, 50, 100, 250, 300, 400, 600):
            for version in OLD_FETCH:
                fetch(talk, f"in {max_bytes}", topic, 1, version, max_bytes=max_bytes)
