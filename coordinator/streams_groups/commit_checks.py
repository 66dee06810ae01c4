"""Checks of the member epoch in offset commits and offset fetches of a streams group.

They are those of a consumer group (consumer_groups/commit_checks.py). The partition of a commit
belongs to the task that reads it: the partition's number, in the subtopology that reads the topic.

Kafka: StreamsGroup.validateOffsetCommit, validateOffsetFetch.
"""

from msgspec import Struct

from odradek.coordinator.any_group.group import Committer, PartitionCheck
from odradek.coordinator.modern_groups.commit_checks import check_version
from odradek.protocol.errors import ApiError, ErrorCode

from .member import StreamsMember
from .topology import Topology


def check_commit(
    member: StreamsMember, topology: Topology | None, committer: Committer
) -> PartitionCheck | None:
    """Check a member's commit; with an older epoch, return a check for each partition.

    Raises ApiError: STALE_MEMBER_EPOCH, UNSUPPORTED_VERSION.
    """
    epoch = committer.generation_id
    if not committer.is_transactional:
        check_version(committer)
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise _stale(f"epoch {epoch} is newer than the member's, {member.member_epoch}")
    if topology is None:
        raise _stale("the group has no topology")
    return _OwnedSince(member, topology, epoch)


def check_fetch(member: StreamsMember, member_epoch: int) -> None:
    """Check the epoch with which a member fetches offsets. Raises ApiError STALE_MEMBER_EPOCH."""
    if member_epoch != member.member_epoch:
        raise _stale(f"epoch {member_epoch} is not the member's, {member.member_epoch}")


class _OwnedSince(Struct, frozen=True):
    """A check that accepts the partitions of tasks that a member has owned since an epoch."""

    member: StreamsMember
    topology: Topology
    epoch: int

    def __call__(self, topic: str, _topic_id: bytes, partition: int) -> None:
        member, topology, epoch = self.member, self.topology, self.epoch
        subtopology_id = topology.reader_of.get(topic)
        if subtopology_id is None:
            raise _stale(f"topic {topic} is not in the topology")
        since = member.assigned.active.get(subtopology_id, {}).get(partition)
        if since is None:
            since = member.pending_revocation.active.get(subtopology_id, {}).get(partition)
        if since is None:
            raise _stale(f"task {subtopology_id}_{partition} is not the member's")
        if epoch < since:
            raise _stale(
                f"the member has had task {subtopology_id}_{partition} since epoch {since} only, "
                f"not at {epoch}"
            )


def _stale(message: str) -> ApiError:
    return ApiError(ErrorCode.STALE_MEMBER_EPOCH, message)
