"""What the machine allows: a loop that receives, checks CRC-32C and writes, and sends by sendfile.

It serves the raw requests of `over_the_wire`, one connection at a time: Produce v9 of one
partition, whose batches all have the same size, and Fetch v12 of the same partition. Of a request
it reads what it needs by position. The answer to each Produce is the same but for its correlation
id.
"""

import contextlib
import functools
import os
import socket
import struct
import sys
from pathlib import Path

from crc32c import crc32c

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.fetch import FetchPartitionData, FetchResponse, FetchTopicResponse
from odradek.protocol.messages.produce import (
    ProducePartitionResponse,
    ProduceResponse,
    ProduceTopicResponse,
)
from tests.bench.figures import BARE
from tests.support.broker_process import BrokerProcess
from tests.support.bystander import PRODUCE_VERSION
from tests.support.stored_batches import FETCH_VERSION

FETCH_BYTES = 2 << 20
ROOM_BYTES = 4 << 20
TAGS = 3  # bytes of empty tagged fields at the end: of the partition, the topic and the message


class BareLoop(BrokerProcess):
    """The loop in a process of its own."""

    name = BARE

    def _command(self) -> list[str]:
        file = str(self.directory / "log")
        return [sys.executable, "-m", "tests.bench.bare_loop", str(self.port), file]


class Log:
    """One file, which has the batches of one connection."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._batch_bytes = self._batch_records = 1
        self._end = 0  # in bytes

    def close(self) -> None:
        """Empty the file."""
        os.ftruncate(self._file, 0)
        os.close(self._file)

    def append(self, batch: memoryview) -> None:
        """Check a batch, give it its offset, and write it."""
        if crc32c(batch[21:]) != struct.unpack_from(">I", batch, 17)[0]:
            raise ValueError("a batch has the wrong checksum")
        self._batch_bytes = len(batch)
        (self._batch_records,) = struct.unpack_from(">i", batch, 57)
        struct.pack_into(">q", batch, 0, self._end // self._batch_bytes * self._batch_records)
        os.write(self._file, batch)
        self._end += self._batch_bytes

    def send(self, client: socket.socket, correlation_id: int, offset: int) -> None:
        """Answer a Fetch from an offset."""
        position = offset // self._batch_records * self._batch_bytes
        whole = FETCH_BYTES // self._batch_bytes * self._batch_bytes
        size = min(whole, self._end - position)
        head = answer_head(size)
        client.sendall(
            struct.pack(">iiB", 5 + len(head) + size + TAGS, correlation_id, 0) + head,
            socket.MSG_MORE,
        )
        while size:
            sent = os.sendfile(client.fileno(), self._file, position, size)
            position, size = position + sent, size - sent
        client.sendall(bytes(TAGS))


@functools.cache
def answer_head(size: int) -> bytes:
    """A Fetch response up to its records, without its header."""
    partition = FetchPartitionData(partition_index=0, high_watermark=1 << 40, records=bytes(size))
    response = FetchResponse(responses=[FetchTopicResponse(topic="bench", partitions=[partition])])
    return bytes(response.encode(FETCH_VERSION))[: -size - TAGS]


def produced_answer() -> bytes:
    """A Produce response without its header."""
    partition = ProducePartitionResponse(index=0, base_offset=0)
    topic = ProduceTopicResponse(name="bench", partition_responses=[partition])
    return bytes(ProduceResponse(responses=[topic]).encode(PRODUCE_VERSION))


def serve(client: socket.socket, log: Log, room: memoryview) -> None:
    """Answer the requests of one connection until it ends."""
    produced = produced_answer()
    while client.recv_into(room, 4, socket.MSG_WAITALL) == 4:
        size = int.from_bytes(room[:4])
        frame = room[:size]
        client.recv_into(frame, size, socket.MSG_WAITALL)
        key, _, correlation_id, name_bytes = struct.unpack_from(">hhih", frame)
        body = 11 + name_bytes
        if key == ApiKey.FETCH:
            topic_bytes = frame[body + 26]  # with the byte of its length
            (offset,) = struct.unpack_from(">q", frame, body + 26 + topic_bytes + 9)
            log.send(client, correlation_id, offset)
            continue
        if key == ApiKey.PRODUCE:
            topic_bytes = frame[body + 8]
            position = body + 8 + topic_bytes + 5
            while frame[position] & 0x80:  # the length of the records
                position += 1
            log.append(frame[position + 1 : size - TAGS])
            client.sendall(struct.pack(">iiB", 5 + len(produced), correlation_id, 0) + produced)
            continue
        client.sendall(struct.pack(">ii", 4, correlation_id))


def main() -> None:
    """Serve one connection after the other, for ever."""
    port, file = int(sys.argv[1]), Path(sys.argv[2])
    room = memoryview(bytearray(ROOM_BYTES))
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            client, _ = server.accept()
            with client, contextlib.closing(Log(file)) as log:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                serve(client, log, room)


if __name__ == "__main__":
    main()
