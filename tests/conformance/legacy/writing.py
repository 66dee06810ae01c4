"""Produce v0-2: message sets, sound and broken, and what becomes of them."""

import cramjam
import lz4.frame

from odradek.protocol.messages.produce import ProducePartitionData, ProduceRequest, ProduceTopicData
from tests.conformance.legacy.requests import (
    CODECS,
    MODERN,
    OLD_FETCH,
    OLD_PRODUCE,
    STORED,
    fetch,
    fetch_in_every_version,
    produce,
    set_of,
)
from tests.conformance.legacy.talk import LegacyTalk
from tests.conformance.requests import batch_of
from tests.support.message_sets import (
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    START_MS,
    compressed,
    message,
    message_set,
    wrapper,
)


def sets_are_written_in_every_version(talk: LegacyTalk) -> None:
    for magic in (0, 1):
        for version in OLD_PRODUCE:
            topic = f"sets-{magic}-{version}"
            talk.modern.create_topic(topic)
            for codec in ("none", *CODECS):
                records = set_of(magic, codec)
                produce(talk, f"magic {magic}, {codec}", topic, records, version)
                produce(talk, f"magic {magic}, {codec}, all", topic, records, version, acks=-1)
            produce(talk, "unanswered", topic, set_of(magic, "none"), version, acks=0)
            fetch_in_every_version(talk, f"magic {magic} written in v{version}", topic)


def odd_sets_of_magic_0_are_stored_or_refused(talk: LegacyTalk) -> None:
    _odd_sets(talk, "odd-0", {**_odd_messages(0), **_odd_wrappers(0)}, 0)


def odd_sets_of_magic_1_are_stored_or_refused(talk: LegacyTalk) -> None:
    _odd_sets(talk, "odd-1", {**_odd_messages(1), **_odd_wrappers(1)}, 2)


def mixtures_of_formats_are_stored_or_refused(talk: LegacyTalk) -> None:
    _odd_sets(talk, "mixed", _mixtures(), 0, 1, 2)


def _odd_sets(talk: LegacyTalk, topic: str, cases: dict[str, bytes], *versions: int) -> None:
    """Each set to a partition of its own."""
    for version in versions:
        name = f"{topic}-{version}"
        talk.modern.create_topic(name, len(cases))
        for partition, (case, records) in enumerate(cases.items()):
            produce(talk, case, name, records, version, partition=partition)
        for partition, case in enumerate(cases):
            fetch(talk, f"what is there of {case}", name, 0, STORED, partition=partition)
            fetch(talk, f"what is read of {case}", name, 0, version, partition=partition)


def _odd_messages(magic: int) -> dict[str, bytes]:
    plain = message_set(b"one", b"two", magic=magic)
    second = len(plain) // 2
    return {
        "a broken checksum": plain[:-1] + b"?",
        "a broken checksum in the first": plain[: second - 1] + b"?" + plain[second:],
        "a byte missing": plain[:-1],
        "a byte too many": plain + b"\x00",
        "half a message": plain[:second] + plain[second : second + 20],
        "a size too small": plain[:11] + b"\x0d" + plain[12:],
        "a size below zero": plain[:8] + b"\xff\xff\xff\xff" + plain[12:],
        "a great size": plain[:8] + b"\x7f\xff\xff\xff" + plain[12:],
        "any offsets": _with_offsets(plain, 100, 7),
        "no key and no value": message(None, None, magic=magic),
        "an empty key and an empty value": message(b"", b"", magic=magic),
        "codec 4": message(b"x", magic=magic, attributes=4),
        "codec 5": message(b"x", magic=magic, attributes=5),
        "unused bits": message(b"x", magic=magic, attributes=0x60),
        "the bit of LogAppendTime": message(b"x", magic=magic, attributes=LOG_APPEND_TIME),
        "times that fall": message(b"x", magic=magic, timestamp_ms=START_MS + 5)
        + message(b"y", magic=magic, timestamp_ms=START_MS, offset=1),
        "no time": message(b"x", magic=magic, timestamp_ms=-1),
        "a time below -1": message(b"x", magic=magic, timestamp_ms=-2),
        "a time in the future": message(b"x", magic=magic, timestamp_ms=START_MS * 10),
        "nothing": b"",
        "a few bytes": plain[:11],
        "offset and size": plain[:12],
    }


def _odd_wrappers(magic: int) -> dict[str, bytes]:
    inside = message_set(b"a" * 50, b"b" * 50, magic=magic)
    one = message(b"one", magic=magic)

    def wrap(content: bytes = inside, codec: int = GZIP, **more: int | bytes) -> bytes:
        return wrapper(content, codec, **{"magic": magic, "offset": 1, **more})  # type: ignore[arg-type] # as given

    gzip, lz4_ = wrap(), wrap(codec=LZ4)
    return {
        "a wrapper with a broken checksum": gzip[:-1] + b"?",
        "a broken checksum inside": wrap(inside[:-1] + b"?"),
        "an empty wrapper": wrap(b""),
        "a wrapper without value": message(None, None, magic=magic, attributes=GZIP),
        "a wrapper with an empty value": message(b"", None, magic=magic, attributes=GZIP),
        "a wrapper with a key": wrap(key=b"outside"),
        "a wrapper of one": wrap(one, SNAPPY, offset=0),
        "a wrapper with offset 0": wrap(offset=0),
        "a wrapper with any offset": wrap(offset=1000),
        "any offsets inside": wrap(_with_offsets(inside, 5, 9), offset=9),
        "offsets inside that fall": wrap(_with_offsets(inside, 5, 3), offset=5),
        "a wrapper that is older than what is in it": wrap(timestamp_ms=START_MS - 5),
        "a wrapper without a time": wrap(timestamp_ms=-1),
        "a wrapper with LogAppendTime": wrap(attributes=LOG_APPEND_TIME),
        "a wrapper whose set is cut": wrap(inside[:-1]),
        "a wrapper with a tail inside": wrap(inside + b"\x00\x00\x00"),
        "two wrappers": gzip + lz4_,
        "a wrapper and messages": gzip + one,
        "messages and a wrapper": one + lz4_,
        "a wrapper in a wrapper": wrap(gzip, LZ4),
        "lz4 by name, not by content": message(b"x" * 40, magic=magic, attributes=LZ4),
        "gzip by name, not by content": message(b"x" * 40, magic=magic, attributes=GZIP),
        "snappy by name, not by content": message(b"x" * 40, magic=magic, attributes=SNAPPY),
        "snappy without a frame": message(
            bytes(cramjam.snappy.compress_raw(inside)), None, magic=magic, attributes=SNAPPY
        ),
        "lz4 with the checksum of the other magic": message(
            compressed(inside, LZ4, 1 - magic), None, magic=magic, attributes=LZ4
        ),
        "lz4 with its size": message(lz4.frame.compress(inside), None, magic=magic, attributes=LZ4),
    }


def _mixtures() -> dict[str, bytes]:
    old, new = message_set(b"a", b"b", magic=0), message_set(b"c", b"d", magic=1)
    batch = bytes(batch_of("e", "f"))
    return {
        "magic 0, then 1": old + new,
        "magic 1, then 0": new + old,
        "magic 1 in a wrapper of magic 0": wrapper(new, GZIP, magic=0, offset=1),
        "magic 0 in a wrapper of magic 1": wrapper(old, GZIP, magic=1, offset=1),
        "magic 2": batch,
        "magic 2 of an idempotent producer": bytes(batch_of("e", producer=(4711, 0, 0))),
        "two batches of magic 2": batch + batch,
        "magic 1, then 2": new + batch,
        "magic 2, then 1": batch + new,
        "magic 2 in a wrapper": wrapper(batch, GZIP, magic=1),
        "magic 3": message(b"x", magic=3),
        "magic -1": message(b"x", magic=-1),
    }


def _with_offsets(plain: bytes, *offsets: int) -> bytes:
    """A set of two messages of one size, with other offsets."""
    second = len(plain) // 2
    first, last = (offset.to_bytes(8, "big") for offset in offsets)
    return first + plain[8:second] + last + plain[second + 8 :]


def old_sets_in_a_modern_produce_are_refused(talk: LegacyTalk) -> None:
    talk.modern.create_topic("refused")
    for magic in (0, 1):
        for version in (3, MODERN, 9):
            produce(talk, f"magic {magic}", "refused", set_of(magic, "none"), version)
            produce(talk, f"magic {magic}, gzip", "refused", set_of(magic, "gzip"), version)
    fetch_in_every_version(talk, "nothing", "refused")


def requests_to_write_are_refused_as_a_whole(talk: LegacyTalk) -> None:
    talk.modern.create_topic("refusing", 2)
    good = message_set(b"one")
    for version in OLD_PRODUCE:
        for acks in (2, -2):
            produce(talk, f"acks {acks}", "refusing", good, version, acks=acks)
        produce(talk, "no such partition", "refusing", good, version, partition=9)
        produce(talk, "no such topic", "refusing-never", good, version)
        produce(talk, "an illegal topic", "not legal", good, version)
        produce(talk, "unanswered, no such topic", "refusing-never", good, version, acks=0)
        produce(talk, "unanswered, broken", "refusing", good[:-1] + b"?", version, acks=0)
        produce(talk, "unanswered, sound", "refusing", good, version, acks=0)
        parts = [(0, good), (9, good), (1, b"")]
        talk.ask("several partitions", _several("refusing", parts), version)
        talk.ask("nothing", ProduceRequest(acks=1, timeout_ms=5000, topic_data=[]), version)
    fetch_in_every_version(talk, "what is there", "refusing")


def _several(topic: str, parts: list[tuple[int, bytes]]) -> ProduceRequest:
    data = [ProducePartitionData(index=index, records=records) for index, records in parts]
    return ProduceRequest(
        acks=1, timeout_ms=5000, topic_data=[ProduceTopicData(name=topic, partition_data=data)]
    )


def topics_set_limits_to_old_sets(talk: LegacyTalk) -> None:
    talk.modern.create_topic("small", max_message_bytes="200")
    talk.modern.create_topic("timed", message_timestamp_before_max_ms="1000")
    talk.modern.create_topic("compacted", cleanup_policy="compact")
    talk.modern.create_topic("insured", min_insync_replicas="2")
    for magic in (0, 1):
        for version in (0, 2):
            _write_to_limited_topics(talk, magic, version)
    for topic in ("small", "timed", "compacted", "insured"):
        fetch_in_every_version(talk, "what is there", topic)


def _write_to_limited_topics(talk: LegacyTalk, magic: int, version: int) -> None:
    title = f"magic {magic}"
    large = message_set(b"x" * 300, magic=magic)
    many = message_set(*[b"x" * 30] * 6, magic=magic)
    produce(talk, f"{title}, too large", "small", large, version)
    produce(talk, f"{title}, too large together", "small", many, version)
    produce(
        talk,
        f"{title}, small when compressed",
        "small",
        wrapper(many, GZIP, magic=magic, offset=5),
        version,
    )
    produce(talk, f"{title}, small", "small", message_set(b"x" * 90, magic=magic), version)
    produce(talk, f"{title}, too old", "timed", message_set(b"x", magic=magic), version)
    produce(
        talk, f"{title}, no key", "compacted", message_set(b"x", key=None, magic=magic), version
    )
    produce(talk, f"{title}, no key inside", "compacted", set_of(magic, "lz4"), version)
    produce(talk, f"{title}, a key", "compacted", message_set(b"x", magic=magic), version)
    produce(talk, f"{title}, all", "insured", message_set(b"x", magic=magic), version, acks=-1)
    produce(talk, f"{title}, one", "insured", message_set(b"x", magic=magic), version)


def topics_set_the_codec_and_the_time(talk: LegacyTalk) -> None:
    for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        topic = f"in-{codec}"
        talk.modern.create_topic(topic, compression_type=codec)
        for magic in (0, 1):
            for given in ("none", "gzip"):
                produce(talk, f"magic {magic}, {given}", topic, set_of(magic, given), 2)
        fetch_in_every_version(talk, f"in {codec}", topic)
    talk.modern.create_topic("stamped", message_timestamp_type="LogAppendTime")
    for version in OLD_PRODUCE:
        for magic in (0, 1):
            for given in ("none", "snappy"):
                produce(talk, f"magic {magic}, {given}", "stamped", set_of(magic, given), version)
    for version in (*OLD_FETCH, STORED):
        fetch(talk, "stamped", "stamped", 0, version)
