"""Finds out whether the topics of a group have changed, so that its epoch must rise."""

from typing import Any, NamedTuple

from odradek.coordinator.runtime.steps import stepping

from .draft import Draft
from .group import EpochGroup, ModernGroup
from .member import M
from .topics_view import ClusterTopics


class TopicsCheck(NamedTuple):
    """The hash of the group's topics, and whether it differs from that of the group epoch."""

    metadata_hash: int
    has_changed: bool


def has_checked_topics(group: EpochGroup[Any, Any], topics: ClusterTopics) -> bool:
    """Whether the group has checked its topics since the last change of any topic."""
    return group.topics_checked_offset == topics.last_change_offset


def check_topics(
    draft: Draft[Any], topics: ClusterTopics, member: M, updated: M, *, changed: bool
) -> TopicsCheck | None:
    """Compare the topics of the draft's group with those of its epoch.

    `changed`: whether the group epoch rises anyway, for example because the subscription of
    `member` has become that of `updated`. Returns None if nothing can have changed: the topics are
    not hashed then.
    """
    group: ModernGroup[M] = draft.group
    if not changed and has_checked_topics(group, topics):
        return None
    draft.topics_checked_offset = topics.last_change_offset
    before = group.subscriptions.topics
    if not changed and not topics.may_have_changed(
        stepping(before, draft.step), group.topics_checked_offset
    ):
        return None
    found = topics.group_hash(
        group.subscriptions.topics_if(member, updated, draft.step), draft.step
    )
    return TopicsCheck(found, found != group.metadata_hash)
