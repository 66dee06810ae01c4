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
from odradek.coordinator.runtime.steps import Step, no_step, stepping

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

    def replace_member(self, old: M | None, new: M | None, step: Step = no_step) -> None:
        """Add (`old` is None), change, or remove (`new` is None) a member."""
        if old and new and old.subscribed_topics == new.subscribed_topics:
            return
        self._count_members(self.topics, [old], -1, step)
        self._count_members(self.topics, [new], +1, step)

    def topics_if(self, old: M, new: M, step: Step = no_step) -> dict[str, Subscribers]:
        """Subscribers by topic if `old` became `new`. The group must not change in a step."""
        topics = dict(self.topics)
        self._count_members(topics, [old], -1, step)
        self._count_members(topics, [new], +1, step)
        return topics

    def topics_without(self, members: Iterable[M], step: Step = no_step) -> dict[str, Subscribers]:
        """Subscribers by topic without these members."""
        topics = dict(self.topics)
        self._count_members(topics, members, -1, step)
        return topics

    @staticmethod
    def _count_members(
        topics: dict[str, Subscribers],
        members: Iterable[M | None],
        change: int,
        step: Step = no_step,
    ) -> None:
        for member in members:
            if member is not None:
                names = stepping(iter(member.subscribed_topics), step)
                count_topics(topics, names, Subscribers(by_name=change))


def count_topics(topics: dict[str, Subscribers], names: Iterable[str], change: Subscribers) -> None:
    """Add to the subscribers of each named topic. Topics without subscribers are removed."""
    after: dict[Subscribers, Subscribers] = {}  # few differ: making each takes longest
    for name in names:
        before = topics.get(name, NO_SUBSCRIBERS)
        subscribers = after.get(before)
        if subscribers is None:
            subscribers = after[before] = Subscribers(
                before.by_name + change.by_name, before.by_regex + change.by_regex
            )
        if subscribers == NO_SUBSCRIBERS:
            topics.pop(name, None)
        else:
            topics[name] = subscribers
