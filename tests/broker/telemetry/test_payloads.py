"""What a push may cost: bombs are refused, and the event loop goes on."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from odradek.broker.telemetry.otlp import MAX_FIELDS
from odradek.broker.telemetry.payloads import MAX_EXPANSION, MAX_WAITING_PUSHES, Payloads
from odradek.protocol.batch_header import HEADER_BYTES
from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.errors import ErrorCode
from tests.support.hostile_batches import gzip_blocks
from tests.support.otlp import gauge, message, metrics_data
from tests.support.telemetry import MAX_BYTES, Telemetry, refused

GAUGE = gauge("org.apache.kafka.producer.a", 1.0)
CODECS = [codec for codec in CompressionType if codec]
MEBIBYTE = 1 << 20


@pytest.fixture
async def telemetry() -> AsyncIterator[Telemetry]:
    rig = Telemetry()
    yield rig
    rig.disk.close()


@pytest.mark.parametrize("codec", CODECS)
async def test_a_push_may_hold_more_than_it_has_bytes(
    telemetry: Telemetry, codec: CompressionType
) -> None:
    count = MAX_EXPANSION * MAX_BYTES // len(metrics_data(GAUGE))
    await telemetry.push(telemetry.subscribe(), metrics_data(*[GAUGE] * count), compression=codec)
    assert telemetry.clients.pushed_count == 1


@pytest.mark.parametrize("codec", CODECS)
async def test_a_bomb_is_refused(telemetry: Telemetry, codec: CompressionType) -> None:
    bomb = compress(codec, bytes(MAX_EXPANSION * MAX_BYTES + 1))
    payloads = Payloads(telemetry.disk, MAX_BYTES)
    with refused(ErrorCode.TELEMETRY_TOO_LARGE):
        await payloads.read(codec, bomb, lambda _: None)


async def test_a_stream_of_very_many_parts_is_refused(telemetry: Telemetry) -> None:
    payloads = Payloads(telemetry.disk, MEBIBYTE)
    empty = compress(CompressionType.GZIP, b"")
    with refused(ErrorCode.TELEMETRY_TOO_LARGE):
        await payloads.read(CompressionType.GZIP, empty * 5_000, lambda _: None)


async def test_a_stream_that_takes_long_to_unpack_is_unpacked_in_a_thread(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    payloads = Payloads(telemetry.disk, MEBIBYTE)
    unpacked_in_thread = []
    monkeypatch.setattr(telemetry.disk, "run", _noting(telemetry.disk.run, unpacked_in_thread))
    await payloads.read(CompressionType.GZIP, gzip_blocks(8_000)[HEADER_BYTES:], lambda _: None)
    assert unpacked_in_thread == [b""]


def _noting(
    run: Callable[..., Awaitable[bytes]], results: list[bytes]
) -> Callable[..., Awaitable[bytes]]:
    """Like `run`; `results` gets what it returns."""

    async def noted(*args: Any, **kwargs: Any) -> bytes:
        results.append(await run(*args, **kwargs))
        return results[-1]

    return noted


@pytest.mark.parametrize("codec", CODECS)
async def test_what_is_not_compressed_is_refused(
    telemetry: Telemetry, codec: CompressionType
) -> None:
    payloads = Payloads(telemetry.disk, MAX_BYTES)
    with refused(ErrorCode.INVALID_RECORD):
        await payloads.read(codec, b"\x00garbage", lambda _: None)


async def test_a_push_of_very_many_messages_does_not_hold_up_others(telemetry: Telemetry) -> None:
    payloads = Payloads(telemetry.disk, MEBIBYTE)
    stored = compress(CompressionType.ZSTD, message(1, b"") * MAX_FIELDS)
    reading = asyncio.ensure_future(payloads.read(CompressionType.ZSTD, stored, lambda _: None))
    turns, began_s = 0, time.monotonic()
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > (time.monotonic() - began_s) / 0.05, "a turn took 50 ms and more on average"
    assert len(await reading) == 2 * MAX_FIELDS


async def test_a_push_of_too_many_messages_is_refused(telemetry: Telemetry) -> None:
    payloads = Payloads(telemetry.disk, MEBIBYTE)
    stored = compress(CompressionType.ZSTD, message(1, b"") * (MAX_FIELDS + 1))
    with refused(ErrorCode.TELEMETRY_TOO_LARGE):
        await payloads.read(CompressionType.ZSTD, stored, lambda _: None)


async def test_pushes_have_turns_and_those_that_wait_are_limited(telemetry: Telemetry) -> None:
    payloads = Payloads(telemetry.disk, MAX_BYTES)
    largest = bytes(MAX_BYTES)
    order: list[int] = []

    async def take(number: int) -> None:
        async with payloads.turn(largest):
            order.append(number)
            await asyncio.sleep(0)
            order.append(number)

    waiting = [asyncio.ensure_future(take(number)) for number in range(MAX_WAITING_PUSHES)]
    await asyncio.sleep(0)
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        await take(-1)
    await asyncio.gather(*waiting)
    await take(MAX_WAITING_PUSHES)
    assert order == [number for number in range(MAX_WAITING_PUSHES + 1) for _ in range(2)]


async def test_a_push_is_read_to_its_end_if_the_client_disconnects(telemetry: Telemetry) -> None:
    instance = telemetry.subscribe()
    content = metrics_data(*[GAUGE] * 20)
    pushing = asyncio.ensure_future(telemetry.push(instance, content, terminating=True))
    await asyncio.sleep(0)
    pushing.cancel()
    await telemetry.background.wait()
    assert telemetry.clients.pushed_count == 1
