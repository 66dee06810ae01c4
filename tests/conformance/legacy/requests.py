"""The requests of the conversations, and the message sets in them."""

from tests.conformance.legacy.talk import LegacyTalk
from tests.conformance.requests import fetch_request, request_with
from tests.support.message_sets import GZIP, LZ4, SNAPPY, START_MS, message, wrapper

CODECS = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4}
OLD_PRODUCE = (0, 1, 2)
OLD_FETCH = (0, 1, 2, 3)
STORED = 12  # a version of Fetch that gives the batches as they are stored
MODERN = 7  # a version of Produce for batches of today


def produce(
    talk: LegacyTalk,
    title: str,
    topic: str,
    records: bytes,
    version: int,
    *,
    partition: int = 0,
    acks: int = 1,
) -> None:
    """Append one field of records to one partition."""
    request = request_with(topic, bytes(records), partition=partition, acks=acks)
    if acks:
        talk.ask(title, request, version)
    else:
        talk.tell(title, request, version)


def fetch(
    talk: LegacyTalk,
    title: str,
    topic: str,
    offset: int,
    version: int,
    *,
    partition: int = 0,
    max_bytes: int = 1 << 20,
    total_bytes: int = 1 << 25,
) -> None:
    """Read one partition; the broker does not wait for more."""
    request = fetch_request(
        topic, offset, partitions=[partition], max_bytes=max_bytes, total_bytes=total_bytes
    )
    talk.ask(f"{title}, v{version} from {offset}", request, version)


def fetch_in_every_version(
    talk: LegacyTalk, title: str, topic: str, offset: int = 0, partition: int = 0
) -> None:
    """Read in each old version, and once as it is stored."""
    for version in (*OLD_FETCH, STORED):
        fetch(talk, title, topic, offset, version, partition=partition)


def set_of(magic: int, codec: str) -> bytes:
    """Three messages, of which one has no key and one no value; compressed or not."""
    plain = b"".join(
        message(value, key, magic=magic, offset=index, timestamp_ms=START_MS + 1000 * index)
        for index, (key, value) in enumerate(
            [(b"key", b"one " * 20), (None, b"two " * 20), (b"key", None)]
        )
    )
    if codec == "none":
        return plain
    return wrapper(plain, CODECS[codec], magic=magic, offset=2, timestamp_ms=START_MS + 2000)
