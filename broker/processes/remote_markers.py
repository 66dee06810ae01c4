"""The markers of transactions in the logs of workers. Kafka: TransactionMarkerChannelManager.

The coordinator tries again until a marker is written. The first try sends it to the worker; when
the worker has written it, and synced it if it must be, the coordinator is told to try again. If the
worker ends before that, the marker is sent again: a second one does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from odradek.coordinator.transactions.marker_writer import ENDED_ALREADY, MarkerSentError
from odradek.protocol.errors import ErrorCode
from odradek.storage.append import EndMarker
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_partition import TopicPartition

from .worker_messages import MarkerWritten, WriteMarker

logger = logging.getLogger("odradek.transactions")

Sent = tuple[EndMarker, TopicPartition]


class RemoteMarkers:
    """Markers that were sent to workers. `on_written` is called with the producer id of each."""

    def __init__(self, log_manager: LogManager) -> None:
        self.on_written: Callable[[int], object] = _ignore
        # Sends a message to a worker that serves; returns whether there is one.
        self.send: Callable[[int, WriteMarker], bool] = _nobody_serves
        self._log_manager = log_manager
        self._sent: dict[Sent, int] = {}  # the worker by marker
        self._written: set[Sent] = set()

    def write(self, marker: EndMarker, where: TopicPartition) -> bool:
        """Whether a worker has written the marker. False: the partition is not a worker's.

        Raises MarkerSentError while it has not.
        """
        if not self._log_manager.is_elsewhere(*where):
            return False
        sent = (marker, where)
        if sent in self._written:
            self._written.remove(sent)
            return True
        if sent not in self._sent:
            process = self._log_manager.share.owner(*where)
            if self.send(process, WriteMarker(marker, where)):
                self._sent[sent] = process
        raise MarkerSentError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "its worker writes the marker")

    def answered(self, answer: MarkerWritten) -> None:
        """Note that a worker has written a marker, or why it has not."""
        sent = (answer.marker, answer.where)
        self._sent.pop(sent, None)
        if answer.code not in (ErrorCode.NONE, *ENDED_ALREADY):
            name = f"{answer.where[0]}-{answer.where[1]}"
            logger.info("no marker in %s yet: %s", name, answer.code.name)
            return
        self._written.add(sent)
        self.on_written(answer.marker.producer_id)

    def worker_ended(self, process: int) -> None:
        """Forget what was sent to a worker that has ended."""
        self._sent = {sent: each for sent, each in self._sent.items() if each != process}


def _ignore(_: int) -> None:
    """Nothing waits for markers yet."""


def _nobody_serves(_process: int, _marker: WriteMarker) -> bool:
    """No worker has been started yet."""
    return False
