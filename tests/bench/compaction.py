"""What a producer feels of the log cleaner: its latency with and without 2 GiB being compacted.

The log is filled first and counts as clean enough; then its topic is told otherwise, and the
producer writes to another one until the cleaner's checkpoint says that it is through.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.bench.figures import Figures, Results, at
from tests.bench.over_the_wire import GB, NOW_MS, pipelined, produce_frame
from tests.bench.swarm import now
from tests.bench.two_brokers import in_turns, new_topic, running
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import produce
from tests.support.compaction import HELD_BACK, LOOKS_SOON, clean_up_to, let_it_be_cleaned
from tests.support.wire import WireClient

SIZE = 2 * GB
VALUE_BYTES = 1000
RECORDS_PER_BATCH = 64
KEYS = 64_000
PAUSE_SECONDS = 0.001
QUIET_SECONDS = 10.0
LIMIT_SECONDS = 1800.0

TOPIC_SETTINGS = {**HELD_BACK, "segment.bytes": str(64 << 20)}


def compaction(scratch: Path, rounds: int, share: int) -> Results:
    """One record a millisecond, acks=all, alone and while a log of 2 GiB is compacted."""
    with running(scratch, LOOKS_SOON, {}) as brokers:
        return in_turns(brokers, rounds, partial(_beside_cleaner, share=share), warm_rounds=0)


def _beside_cleaner(broker: BrokerProcess, share: int) -> Figures:
    size = SIZE // share
    with new_topic(broker, 1, TOPIC_SETTINGS) as topic, new_topic(broker) as other:
        records = fill(broker, topic, size)
        quiet_until = now() + QUIET_SECONDS
        alone = round_trips(broker, other, lambda: now() < quiet_until)
        let_it_be_cleaned(broker.bootstrap, topic)
        began = now()
        is_cleaned = looks_for_the_end(broker.data, topic)
        beside = round_trips(
            broker, other, lambda: not is_cleaned() and now() < began + LIMIT_SECONDS
        )
        seconds = now() - began
        assert is_cleaned(), f"{topic} was not cleaned in {LIMIT_SECONDS} seconds"
    return {
        "p50_us_alone": at(alone, 0.50),
        "p99_us_alone": at(alone, 0.99),
        "p50_us_beside": at(beside, 0.50),
        "p99_us_beside": at(beside, 0.99),
        "cleaner_MB_per_s": size / 2**20 / seconds,
        "cleaner_records_per_s": records / seconds,
    }


def fill(broker: BrokerProcess, topic: str, size: int) -> int:
    """Write so many bytes, every key again and again; how many records that were."""
    batches = [_batch(first) for first in range(0, KEYS, RECORDS_PER_BATCH)]
    count = size // len(batches[0])
    frames = (produce_frame(topic, 1, batch, 1) for batch in cycle(batches))
    with WireClient(broker.port) as client:
        pipelined(client, islice(frames, count))
    return count * RECORDS_PER_BATCH


def _batch(first_key: int) -> bytes:
    keys = range(first_key, first_key + RECORDS_PER_BATCH)
    value = bytes(VALUE_BYTES)
    return bytes(build_batch([Record(b"key-%08d" % key, value, NOW_MS) for key in keys]))


def round_trips(broker: BrokerProcess, topic: str, goes_on: Callable[[], bool]) -> list[float]:
    """Microseconds from sending one record to its answer, sorted."""
    batch = bytes(build_batch([Record(None, bytes(VALUE_BYTES), NOW_MS)]))
    found = []
    with WireClient(broker.port) as client:
        while goes_on():
            started = now()
            produce(client, topic, batch)
            found.append((now() - started) * 1e6)
            time.sleep(PAUSE_SECONDS)
    return sorted(found)


def looks_for_the_end(data: Path, topic: str) -> Callable[[], bool]:
    """Whether the log was cleaned; looks at the file ten times a second at most."""
    looks = _looks(data, topic)
    return lambda: next(looks)


def _looks(data: Path, topic: str) -> Iterator[bool]:
    looked = 0.0
    is_cleaned = False
    while True:
        if now() > looked + 0.1:
            is_cleaned = clean_up_to(data, topic) is not None
            looked = now()
        yield is_cleaned


WORKLOADS = {"compaction": compaction}
