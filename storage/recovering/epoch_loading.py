"""Loads the leader epochs of a log at start, from the checkpoint; if that is missing or damaged,
from the batch headers.
"""

import logging

from odradek.protocol.batch_header import BatchHeader
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.checkpoints import CheckpointError
from odradek.storage.filenames import LEADER_EPOCH_CHECKPOINT
from odradek.storage.leader_epochs import LeaderEpochs
from odradek.storage.segment_list import SegmentList

from .log_source import LogSource

_logger = logging.getLogger(__name__)


def load_epochs(source: LogSource, segments: SegmentList) -> LeaderEpochs:
    """Load the epochs. Raises OSError.

    After an unclean stop those of the unflushed batches are still missing.
    """
    path = source.directory / LEADER_EPOCH_CHECKPOINT
    try:
        epochs = LeaderEpochs(source.files, path)
    except (CheckpointError, ValueError) as error:
        _logger.warning("rebuilding the leader epochs: %s", error)
        source.files.remove(path)
        epochs = LeaderEpochs(source.files, path)
    if epochs.latest is None and source.had_clean_shutdown:
        epochs_from_batches(segments, epochs)
    return epochs


def epochs_from_batches(segments: SegmentList, epochs: LeaderEpochs) -> None:
    """Add the epochs of all batch headers up to the first corrupt one. Raises OSError."""
    for segment in segments:
        try:
            for _, header in segment.headers_from(segment.base_offset):
                note_epoch(epochs, header)
        except CorruptBatchError as error:
            _logger.warning("leader epochs end early: %s", error)


def note_epoch(epochs: LeaderEpochs, header: BatchHeader) -> None:
    """Add the epoch of a batch."""
    latest = epochs.latest
    if header.partition_leader_epoch > (latest.epoch if latest else -1):
        epochs.assign(header.partition_leader_epoch, header.base_offset)
