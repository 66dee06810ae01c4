"""Where a consumer is to read instead of at the leader (KIP-392)."""

from __future__ import annotations

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog


class PreferredReplicaError(ApiError):
    """A log is not read, because the consumer is to ask another node: one of its own rack."""

    def __init__(self, log: PartitionLog, node_id: int) -> None:
        super().__init__(ErrorCode.NONE, f"{log.name} is to be read from node {node_id}")
        self.log = log
        self.node_id = node_id
