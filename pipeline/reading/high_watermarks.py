"""Finds the high watermark of a partition: the offset after the last record that is committed.

A broker keeps it in memory. All records of a partition with a single replica are committed, so its
high watermark is the log end. If there are several replicas, a record at the log end may be
truncated when another replica becomes the leader. Then `replication-offset-checkpoint` has a lower
bound: the high watermark that this replica knew, as leader or as follower, when the broker last
wrote the file (every `replica.high.watermark.checkpoint.interval.ms`, 5 s, and when it stops).
Only an unclean leader election truncates records before it.

Without the metadata log the number of replicas is not known, and the checkpoint is used. Without
a checkpoint too, the directory is not a broker's but a copy of logs, and is read to the log end.
The raft log `__cluster_metadata` is never in the checkpoint and is read to its log end, too.

Kafka: ReplicaManager.checkpointHighWatermarks, Partition.maybeIncrementLeaderHW,
UnifiedLog.updateHighWatermark.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.schema import DecodeError
from odradek.storage.filenames import REPLICATION_OFFSET_CHECKPOINT, partition_directory
from odradek.storage.files import Files
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC
from odradek.storage.topic_partition import TopicPartition

from .checkpoint_cache import CheckpointCache

if TYPE_CHECKING:
    from .single_replicas import SingleReplicas

_logger = logging.getLogger(__name__)

_METADATA_LOG = partition_directory(CLUSTER_METADATA_TOPIC, 0)


class HighWatermarks:
    """The high watermarks in the log directories of a broker.

    They never decrease, because a committed record stays committed: not even when a partition gets
    more replicas and the checkpoint is older than the log end that was returned before.
    """

    def __init__(self, files: Files, paths: Iterable[Path], checkpoints: CheckpointCache) -> None:
        self._files = files
        self._places = [path / _METADATA_LOG for path in paths]
        self._checkpoints = checkpoints
        self._single: SingleReplicas | None = None
        self._known: dict[tuple[TopicPartition, bytes | None], int] = {}
        self._warned: set[str] = set()

    def of(
        self, partition: TopicPartition, topic_id: bytes | None, directory: Path, log_end: int
    ) -> int:
        """Return the high watermark, at most `log_end`; 0 if none is known yet.

        `directory` is the log directory, which has the partition's. Raises OSError.
        """
        key = partition, topic_id
        self._known[key] = max(
            self._known.get(key, 0), self._find(partition, topic_id, directory, log_end)
        )
        return min(self._known[key], log_end)

    def _find(
        self, partition: TopicPartition, topic_id: bytes | None, directory: Path, log_end: int
    ) -> int:
        checkpointed = self._checkpoints.offsets(directory / REPLICATION_OFFSET_CHECKPOINT)
        single = self._single_replicas()
        is_copy = checkpointed is None and single is None
        if is_copy or partition[0] == CLUSTER_METADATA_TOPIC:
            return log_end
        offset = (checkpointed or {}).get(partition, 0)
        if offset >= log_end:
            return log_end
        if single is None:
            self._warn(
                f"records of {directory} after the last checkpoint of the high watermarks are not "
                f"read: there is no {_METADATA_LOG}, which has the number of replicas, in the "
                "directories that are read (add metadata.log.dir)"
            )
            return offset
        is_single = topic_id is not None and self._is_single(single, topic_id, partition[1])
        return log_end if is_single else offset

    def _single_replicas(self) -> "SingleReplicas | None":
        if self._single is None:
            directory = next(filter(self._files.is_directory, self._places), None)
            if directory is not None:
                from .single_replicas import SingleReplicas  # numpy is needed only here

                self._single = SingleReplicas(self._files, directory)
        return self._single

    def _is_single(self, single: "SingleReplicas", topic_id: bytes, partition: int) -> bool:
        try:
            return single.contain(topic_id, partition)
        except FileNotFoundError:  # the metadata log was deleted or moved; look for it next time
            self._single = None
            return False
        except (CorruptRecordError, DecodeError) as error:
            self._warn(
                f"records after the last checkpoint of the high watermarks are not read: the number"
                f" of replicas is unknown, because the metadata log is damaged: {error}"
            )
            return False

    def _warn(self, message: str) -> None:
        """Log a warning once."""
        if message not in self._warned:
            self._warned.add(message)
            _logger.warning("%s", message)
