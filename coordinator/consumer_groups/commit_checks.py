"""Checks of the member epoch in offset commits and offset fetches of a consumer group.

A member may move to a new epoch between sending a commit and the commit's arrival, while it keeps
its partitions. Its commit is then valid. So a commit with an older epoch is accepted for each
partition that the member has owned since that epoch or longer: every partition carries the epoch at
which it was assigned (KIP-1251). An epoch newer than the member's own is refused.

The epoch of a classic member is its generation, and the error is ILLEGAL_GENERATION.
Kafka: ConsumerGroup.validateOffsetCommit, validateOffsetFetch.
"""

from msgspec import Struct

from odradek.coordinator.any_group.group import Committer, PartitionCheck
from odradek.coordinator.modern_groups.commit_checks import check_version
from odradek.protocol.errors import ApiError, ErrorCode

from .member import ConsumerMember


def check_commit(member: ConsumerMember, committer: Committer) -> PartitionCheck | None:
    """Check a member's commit; with an older epoch, return a check for each partition.

    Raises ApiError STALE_MEMBER_EPOCH (ILLEGAL_GENERATION for a classic member),
    UNSUPPORTED_VERSION.
    """
    epoch = committer.generation_id
    by_epoch = not member.uses_classic_protocol and not committer.is_transactional
    if by_epoch:
        check_version(committer)
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise _refusal(member, f"epoch {epoch} is newer than the member's, {member.member_epoch}")
    return _OwnedSince(member, epoch)


def check_fetch(member: ConsumerMember, member_epoch: int) -> None:
    """Check the epoch with which a member fetches offsets.

    Raises ApiError STALE_MEMBER_EPOCH (ILLEGAL_GENERATION for a classic member).
    """
    if member_epoch != member.member_epoch:
        raise _refusal(member, f"epoch {member_epoch} is not the member's, {member.member_epoch}")


class _OwnedSince(Struct, frozen=True):
    """A check that accepts the partitions that a member has owned since an epoch or longer."""

    member: ConsumerMember
    epoch: int

    def __call__(self, topic: str, topic_id: bytes, partition: int) -> None:
        member, epoch = self.member, self.epoch
        since = member.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = member.pending_revocation.get(topic_id, {}).get(partition)
        if since is None:
            raise _refusal(member, f"partition {topic}-{partition} is not the member's")
        if epoch < since:
            raise _refusal(
                member,
                f"the member has had partition {topic}-{partition} since epoch {since} only, "
                f"not at {epoch}",
            )


def _refusal(member: ConsumerMember, message: str) -> ApiError:
    classic = member.uses_classic_protocol
    code = ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH
    return ApiError(code, message)
