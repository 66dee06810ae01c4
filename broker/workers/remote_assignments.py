"""Records in the metadata, from a worker, to which log directory a log has moved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from odradek.broker.processes.worker_messages import AssignDirectory, DirectoryAssigned
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_partition import TopicPartition


class RemoteAssignments:
    """The assignments that the broker's own process has been asked to record."""

    def __init__(self, send: Callable[[object], object]) -> None:
        self._send = send
        self._waiting: dict[TopicPartition, tuple[AssignDirectory, asyncio.Future[None]]] = {}
        self._last_number = 0

    def assign(self, partition: TopicPartition, directory_id: bytes) -> None:
        """Ask for an assignment. It replaces the one before of the same partition."""
        self._last_number += 1
        asked = AssignDirectory(self._last_number, partition, directory_id)
        self._waiting[partition] = (asked, asyncio.get_running_loop().create_future())
        self._send(asked)

    async def assigned(self, partition: TopicPartition) -> None:
        """Return when the last assignment of the partition is on the disk. Raises its ApiError."""
        waiting = self._waiting.get(partition)
        if waiting is not None:
            await asyncio.shield(waiting[1])

    def answered(self, answer: DirectoryAssigned) -> None:
        """Note the end of an assignment."""
        asked, future = self._waiting.get(answer.partition, (None, None))
        if asked is None or future is None or asked.number != answer.number:
            return
        del self._waiting[answer.partition]
        if answer.code is ErrorCode.NONE:
            future.set_result(None)
        else:
            future.set_exception(ApiError(answer.code, answer.message))
            future.exception()  # a move that was given up does not wait for it
