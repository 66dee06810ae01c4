"""The quick path of Produce beside the careful one."""

import asyncio
import os

import pytest

from odradek.broker.handlers import produce
from odradek.broker.producing import quick_produce
from odradek.broker.producing.accepted_produce import encode_accepted
from odradek.broker.producing.single_batch import SingleBatch
from odradek.broker.requests.context import RequestContext
from odradek.protocol.batch_header import PREFIX_BYTES, batch_prefix
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.storage.log import PartitionLog

Response = bytearray | ProduceResponse | asyncio.Future[ProduceResponse | None] | None


def serve_carefully(context: RequestContext, request: ProduceRequest) -> Response:
    """Serve a request by the careful path."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(produce, "append_quickly", lambda _context, _request: None)
        response: Response = produce.handle(context, request)  # type: ignore[assignment] # shielded
    return response


class BothPaths:
    """Serves by the careful path what the quick one would serve, and compares what they do.

    `count` says how often that was. All other requests are served by the careful path anyway.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(produce, "append_quickly", self._append)

    def _append(
        self, context: RequestContext, request: ProduceRequest | SingleBatch
    ) -> bytearray | None:
        """Stand in for `append_quickly`."""
        single = request.target if isinstance(request, SingleBatch) else None
        if isinstance(request, SingleBatch):
            request = request.whole()
        batches = quick_produce.check_all(context, request)
        if batches is None:
            return None
        self.count += 1
        stored = [(log.log_end_offset, log.log_start_offset) for log, _ in batches]
        promised = encode_accepted(request, context.api_version, stored)
        if single is not None:
            assert single.answer.encode(*stored[0]) == promised
        response = serve_carefully(context, request)
        if request.acks:
            assert isinstance(response, ProduceResponse), "the careful path has to wait"
            assert response.encode(context.api_version) == promised
        else:
            assert response is None
        for (log, batch), (base_offset, _) in zip(batches, stored, strict=True):
            prefix = batch_prefix(base_offset, batch.batch_length, log.leader_epoch)
            data = prefix + bytes(batch.data[PREFIX_BYTES:])
            assert last_bytes(log, len(data)) == data
            assert log.high_watermark == log.log_end_offset == base_offset + batch.record_count
        return promised


def last_bytes(log: PartitionLog, size: int) -> bytes:
    """The end of the log's file."""
    segment = log.segments.active
    return os.pread(segment.file.fd, size, segment.size_bytes - size)
