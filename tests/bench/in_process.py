"""Workloads inside this process: what the wire and the log cost without sockets."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from odradek.protocol.compression import CompressionType
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.support.bystander import produce_request
from tests.support.log_box import NOW_MS, LogBox

RECORDS = [
    Record(key=b"key", value=b"lorem ipsum " * 80, timestamp_ms=NOW_MS + n) for n in range(64)
]


def _microseconds(work: Callable[[], object], times: int) -> float:
    """What one call takes, by the best of three runs of `times`."""
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(times):
            work()
        best = min(best, (time.perf_counter() - started) / times)
    return best * 1e6


def messages(scratch: Path, share: int) -> dict[str, float]:
    """Reading and writing what a Produce of six partitions needs, and a Metadata."""
    batch = bytes(build_batch(RECORDS[:16]))
    request = produce_request("bench", batch, partitions=6).encode(9)
    response = ProduceResponse(
        responses=[
            ProduceTopicResponse(
                name="bench",
                partition_responses=[
                    ProducePartitionResponse(index=n, base_offset=n * 1000) for n in range(6)
                ],
            )
        ]
    )
    metadata = MetadataRequest(topics=None).encode(12)
    view = memoryview(request)
    times = 20_000 // share
    return {
        "read_produce_us": _microseconds(lambda: ProduceRequest.decode(view, 9), times),
        "write_produce_us": _microseconds(lambda: response.encode(9), times),
        "read_metadata_us": _microseconds(lambda: MetadataRequest.decode(metadata, 12), times),
    }


def append(scratch: Path, share: int) -> dict[str, float]:
    """One batch of 16 KiB and one of 64 KiB into a log: checks, stamp, write, index."""
    figures = {}
    for count in (16, 64):
        batch = memoryview(bytes(build_batch(RECORDS[:count])))
        with TemporaryDirectory(dir=scratch) as directory:
            log = LogBox(Path(directory)).open()
            figures[f"append_{count}_KiB_us"] = _microseconds(
                partial(log.append, batch, now_ms=NOW_MS), 4000 // share
            )
            log.close(NOW_MS)
    return figures


def _read(batch: bytes) -> list[Record]:
    return list(read_records(batch))


def codecs(scratch: Path, share: int) -> dict[str, float]:
    """Building and reading a batch of 64 records of 1 KiB in each codec."""
    figures = {}
    for codec in CompressionType:
        batch = bytes(build_batch(RECORDS, compression=codec))
        figures[f"build_{codec.name.lower()}_us"] = _microseconds(
            partial(build_batch, RECORDS, compression=codec), 500 // share
        )
        figures[f"read_{codec.name.lower()}_us"] = _microseconds(
            partial(_read, batch), 500 // share
        )
    return figures


WORKLOADS: dict[str, Callable[[Path, int], dict[str, float]]] = {
    work.__name__: work for work in (messages, append, codecs)
}
