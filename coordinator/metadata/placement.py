"""Where a new partition goes: on this broker, in the log directory with the fewest partitions.

There is one broker, so each partition has one replica. A request for more gets the error of a Kafka
cluster with so many nodes as clients see: one, or those that are played (odradek.nodes).
Kafka: StripedReplicaPlacer, ReplicationControlManager.validateManualPartitionAssignment,
LogManager.nextLogDirs.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from odradek.coordinator.runtime.steps import Step, no_step, stepping, stepping_if_many
from odradek.protocol.errors import ApiError, ErrorCode

from .cluster_metadata import ClusterMetadata
from .topics import Partition


class Placer:
    """Places the new partitions of one decision; it counts those that it has placed itself."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        node_id: int,
        directories: Sequence[bytes],
        cordoned: Collection[bytes] = (),
        step: Step = no_step,
        *,
        replica_ids: Sequence[int] = (),
        live_ids: Collection[int] = (),
    ) -> None:
        """`directories`: the directory.id of each log directory that is online.

        `replica_ids`: the nodes that a request may name, `live_ids` those that live; empty: this
        one.

        Those that are `cordoned` are left out. If all are, only a manual assignment is accepted,
        and any of them is used.
        """
        usable = [directory for directory in directories if directory not in cordoned]
        self._metadata = metadata
        self._node_id = node_id
        self._replica_ids = replica_ids or (node_id,)
        self._live_ids = live_ids or self._replica_ids
        self._all_cordoned = bool(directories) and not usable
        self._directories = usable or directories
        self._partitions_in = (
            Counter(self._known_directories(step)) if len(directories) > 1 else None
        )

    def _known_directories(self, step: Step) -> Iterator[bytes]:
        for topic in stepping(self._metadata.topics.values(), step):
            for partition in stepping(topic.partitions.values(), step):
                directory = partition.directory_of(self._node_id)
                if directory is not None:
                    yield directory

    def new_partition(self, index: int) -> Partition:
        """Make a new partition, led by this broker."""
        return Partition(
            index=index,
            replicas=(self._node_id,),
            isr=(self._node_id,),
            leader=self._node_id,
            leader_epoch=0,
            partition_epoch=0,
            directories=(self._next_directory(),),
        )

    def _next_directory(self) -> bytes:
        if not self._directories:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "All log directories are offline.")
        if self._partitions_in is None:
            return self._directories[0]
        counts = self._partitions_in
        chosen = min(self._directories, key=lambda directory: counts[directory])
        counts[chosen] += 1
        return chosen

    def check_replication_factor(self, replication_factor: int) -> None:
        """Raise INVALID_REPLICATION_FACTOR if there are fewer nodes, or all are cordoned."""
        if replication_factor <= 0:
            reason = (
                f"Invalid replication factor {replication_factor}: "
                "the replication factor must be positive."
            )
        elif self._all_cordoned:
            reason = "all log directories of the only broker are cordoned."
        elif replication_factor > len(self._replica_ids):
            reason = (
                f"The target replication factor of {replication_factor} cannot be reached "
                f"because only {len(self._replica_ids)} broker(s) are registered."
            )
        else:
            return
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): {reason}",
        )

    def check_assignment(
        self, broker_ids: Sequence[int], replication_factor: int | None, step: Step = no_step
    ) -> None:
        """Raise INVALID_REPLICA_ASSIGNMENT unless the replicas are nodes of the cluster.

        `replication_factor` is that of the request's partitions before this one, None for the
        first.
        """
        check_replicas(self._replica_ids, broker_ids, step)
        if not any(broker_id in self._live_ids for broker_id in broker_ids):
            raise _bad_assignment(f"names no broker that lives: {list(broker_ids)}.")
        if replication_factor not in (None, len(broker_ids)):
            raise _bad_assignment(
                f"includes a partition with {len(broker_ids)} replica(s), but this is not "
                f"consistent with previous partitions, which have {replication_factor} replica(s)."
            )


def check_replicas(brokers: Collection[int], replicas: Sequence[int], step: Step = no_step) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT unless these are registered brokers, each named once.

    The error is about the lowest broker id that is wrong, as in Kafka.
    """
    if not replicas:
        raise _bad_assignment("includes an empty replica list.")
    wrong: int | None = None
    named: set[int] = set()
    for broker_id in stepping_if_many(replicas, step):
        if broker_id in brokers and broker_id not in named:
            named.add(broker_id)
        elif wrong is None or broker_id < wrong:
            wrong = broker_id
    if wrong is None:
        return
    if wrong in brokers:
        raise _bad_assignment(f"includes the broker {wrong} more than once.")
    raise _bad_assignment(f"includes broker {wrong}, but no such broker is registered.")


def _bad_assignment(problem: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {problem}"
    )
