"""Checks of offset commits that are the same in every type of group with member epochs.

Kafka: the validateOffsetCommit methods of ConsumerGroup and StreamsGroup.
"""

from odradek.coordinator.any_group.group import Committer
from odradek.protocol.errors import ApiError, ErrorCode

# The first version of OffsetCommit with the error codes of member epochs.
FIRST_WITH_MEMBER_EPOCHS = 9


def needs_member(committer: Committer, *, group_is_empty: bool) -> bool:
    """Whether a commit must come from a member of the group.

    An empty group takes commits without an epoch (an administrator's). Older clients commit in a
    transaction without naming their member.
    """
    if committer.generation_id < 0 and group_is_empty:
        return False
    return not (committer.is_transactional and _is_anonymous(committer))


def check_version(committer: Committer) -> None:
    """Raise ApiError UNSUPPORTED_VERSION for a client that does not know member epochs."""
    if committer.api_version < FIRST_WITH_MEMBER_EPOCHS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"a member with an epoch commits in v{FIRST_WITH_MEMBER_EPOCHS} or above",
        )


def _is_anonymous(committer: Committer) -> bool:
    """Whether a commit names no member."""
    names_member = bool(committer.member_id) or committer.group_instance_id is not None
    return committer.generation_id == -1 and not names_member
