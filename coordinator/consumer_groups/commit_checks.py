"""Whether a member may commit and read offsets: who it is, and at which epoch it says it is.

A member that has moved to a new epoch between sending a commit and the commit's arrival, would see
it refused though nothing has happened to its partitions. So an older epoch is good enough for those
partitions which the member had at that epoch and has had since: each carries the epoch at which it
was assigned (KIP-1251). A newer epoch than the member's own is nobody's.

A member of the classic protocol knows its epoch as a generation, and is told so.
Kafka: ConsumerGroup.validateOffsetCommit, validateOffsetFetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from odradek.coordinator.group import Committer, PartitionCheck

    from .group import ConsumerGroup
    from .member import ConsumerMember

# The first OffsetCommit that members of the consumer protocol use: it knows their errors.
FIRST_WITH_MEMBER_EPOCHS = 9


def check_commit(group: ConsumerGroup, committer: Committer) -> PartitionCheck | None:
    """Whether offsets may be committed in this name; a check is for each partition.

    Raises ApiError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH (ILLEGAL_GENERATION of a classic member),
    UNSUPPORTED_VERSION.
    """
    epoch = committer.generation_id
    if epoch < 0 and group.is_empty:
        return None
    if committer.is_transactional and _is_anonymous(committer):
        return None
    member = group.member(committer.member_id)
    by_epoch = not member.uses_classic_protocol and not committer.is_transactional
    if by_epoch and committer.api_version < FIRST_WITH_MEMBER_EPOCHS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"a member of the consumer protocol commits in v{FIRST_WITH_MEMBER_EPOCHS} or above",
        )
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise _refusal(member, f"epoch {epoch} is newer than the member's, {member.member_epoch}")
    return _check_of_partitions(member, epoch)


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    """Whether offsets may be read in this name; nobody in particular (null, -1) may.

    Raises ApiError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH (ILLEGAL_GENERATION of a classic member).
    """
    if member_id is None and member_epoch < 0:
        return
    member = group.member(member_id or "")
    if member_epoch != member.member_epoch:
        raise _refusal(member, f"epoch {member_epoch} is not the member's, {member.member_epoch}")


def _is_anonymous(committer: Committer) -> bool:
    """An older client does not say in a transaction on whose behalf it commits."""
    has_name = bool(committer.member_id) or committer.group_instance_id is not None
    return committer.generation_id == -1 and not has_name


def _check_of_partitions(member: ConsumerMember, epoch: int) -> PartitionCheck:
    """A member at an older epoch may commit what it has had since that epoch."""

    def check(topic: str, topic_id: bytes, partition: int) -> None:
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

    return check


def _refusal(member: ConsumerMember, why: str) -> ApiError:
    classic = member.uses_classic_protocol
    code = ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH
    return ApiError(code, why)
