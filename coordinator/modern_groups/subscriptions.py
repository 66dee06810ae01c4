"""Subscriber counts of a group by topic.

With counts, the topics that a group of a thousand members is subscribed to are known without a walk
over the members. The `..._if` and `..._without` methods return the counts after a change that is
not applied yet.

Kafka: ModernGroup.subscribedTopicNames, SubscriptionCount.
"""

from collections.abc import Iterable, Mapping
from typing import Generic

from msgspec import Struct

from odradek.coordinator.runtime.copies import Copyable

from .member import M


class Subscribers(Struct, frozen=True, gc=False):
    """Subscribers of one topic: members that name it, and regular expressions that match it."""

    by_name: int = 0
    by_regex: int = 0


TopicSubscribers = Mapping[str, Subscribers]
NO_SUBSCRIBERS = Subscribers()


class TopicSubscriptions(Copyable, Generic[M]):
    """The subscribers of each topic that a group's members subscribe to."""

    def __init__(self) -> None:
        self.topics: dict[str, Subscribers] = {}

    def replace_member(self, old: M | None, new: M | None) -> None:
        """Add (`old` is None), change, or remove (`new` is None) a member."""
        if old and new and old.subscribed_topics == new.subscribed_topics:
            return
        self._count_members(self.topics, [old], -1)
        self._count_members(self.topics, [new], +1)

    def topics_if(self, old: M, new: M) -> dict[str, Subscribers]:
        """Subscribers by topic if `old` became `new`."""
        topics = self.topics_without([old])
        self._count_members(topics, [new], +1)
        return topics

    def topics_without(self, members: Iterable[M]) -> dict[str, Subscribers]:
        """Subscribers by topic without these members."""
        topics = dict(self.topics)
        self._count_members(topics, members, -1)
        return topics

    @staticmethod
    def _count_members(
        topics: dict[str, Subscribers], members: Iterable[M | None], step: int
    ) -> None:
        for member in members:
            if member is not None:
                count_topics(topics, member.subscribed_topics, Subscribers(by_name=step))


def count_topics(topics: dict[str, Subscribers], names: Iterable[str], step: Subscribers) -> None:
    """Add `step` to the subscribers of each named topic. Topics without subscribers are removed."""
    for name in names:
        before = topics.get(name, NO_SUBSCRIBERS)
        subscribers = Subscribers(before.by_name + step.by_name, before.by_regex + step.by_regex)
        if subscribers == NO_SUBSCRIBERS:
            topics.pop(name, None)
        else:
            topics[name] = subscribers
