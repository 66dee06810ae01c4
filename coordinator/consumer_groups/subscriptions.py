"""Subscriber counts of a consumer group: members per topic and per regular expression.

A topic that a regular expression matches counts once per expression, not once per member. It is
removed when the expression's resolution is removed, after its last subscriber has left. Whether all
members have the same subscription is known from the counts, without a walk over the members.

Kafka: the fields of ConsumerGroup with these names.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

from odradek.coordinator.modern_groups.subscriptions import (
    Subscribers,
    TopicSubscribers,
    TopicSubscriptions,
    count_topics,
)
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.runtime.timers import NEVER_MS

from .member import ConsumerMember

K = TypeVar("K")


class ResolvedRegex(Struct, frozen=True, kw_only=True):
    """The topics that a regular expression matched when it was last resolved.

    `version` is the metadata offset of that resolution, `timestamp_ms` its wall time.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


ONE_REGEX = Subscribers(by_regex=1)


class Subscriptions(TopicSubscriptions[ConsumerMember]):
    """The subscriptions of one group's members."""

    def __init__(self) -> None:
        super().__init__()
        self.regex_subscribers: Counter[str] = Counter()
        """Number of members by regular expression; never zero."""
        self.resolved_regexes: dict[str, ResolvedRegex] = {}

    # -- replay ------------------------------------------------------------------------------------

    def replace_member(
        self, old: ConsumerMember | None, new: ConsumerMember | None, step: Step = no_step
    ) -> None:
        """Add (`old` is None), change, or remove (`new` is None) a member."""
        super().replace_member(old, new, step)
        if not (old and new and old.subscribed_regex == new.subscribed_regex):
            _count_regex(self.regex_subscribers, old, new)

    def replace_regex(
        self, regex: str, resolved: ResolvedRegex | None, step: Step = no_step
    ) -> None:
        """Set the resolution of an expression; None removes it."""
        old = self._topics_of_regex(regex)
        new: frozenset[str] = frozenset()
        if resolved is None:
            self.resolved_regexes.pop(regex, None)
        else:
            self.resolved_regexes[regex] = resolved
            new = resolved.topics
        _replace_regex_topics(self.topics, old, new, step)

    # -- queries -----------------------------------------------------------------------------------

    @property
    def regexes_refreshed_ms(self) -> int:
        """When the expressions were last resolved (always together); NEVER_MS if none is."""
        return next((r.timestamp_ms for r in self.resolved_regexes.values()), NEVER_MS)

    @property
    def regexes_version(self) -> int:
        """The metadata offset at which the expressions were resolved; 0 if none is."""
        return next((r.version for r in self.resolved_regexes.values()), 0)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """All topic names that a member subscribes to; an unresolved expression matches none."""
        resolved = self.resolved_regexes.get(member.subscribed_regex)
        return member.subscribed_topics | resolved.topics if resolved else member.subscribed_topics

    # -- counts after a change ---------------------------------------------------------------------

    def topics_if(
        self, old: ConsumerMember, new: ConsumerMember, step: Step = no_step
    ) -> dict[str, Subscribers]:
        """Subscribers by topic if `old` became `new`.

        If an expression thereby loses its last subscriber, its topics are removed.
        """
        topics = super().topics_if(old, new, step)
        regex = old.subscribed_regex
        if regex != new.subscribed_regex and self.regex_subscribers[regex] == 1:
            self._remove_regexes(topics, [regex], step)
        return topics

    def topics_without(
        self,
        members: Iterable[ConsumerMember],
        step: Step = no_step,
        regexes: Iterable[str] = (),
    ) -> dict[str, Subscribers]:
        """Subscribers by topic without these members and these expressions."""
        topics = super().topics_without(members, step)
        self._remove_regexes(topics, regexes, step)
        return topics

    def topics_if_resolved(
        self, resolved: Mapping[str, ResolvedRegex], step: Step = no_step
    ) -> TopicSubscribers:
        """Subscribers by topic if these expressions were resolved to these topics."""
        topics = dict(self.topics)
        for regex, resolution in resolved.items():
            _replace_regex_topics(topics, self._topics_of_regex(regex), resolution.topics, step)
        return topics

    def regexes_if(self, old: ConsumerMember, new: ConsumerMember) -> Mapping[str, int]:
        """Number of members by expression if `old` became `new`."""
        regexes = self.regex_subscribers.copy()
        _count_regex(regexes, old, new)
        return regexes

    def _remove_regexes(
        self, topics: dict[str, Subscribers], regexes: Iterable[str], step: Step
    ) -> None:
        for regex in regexes:
            _replace_regex_topics(topics, self._topics_of_regex(regex), frozenset(), step)

    def _topics_of_regex(self, regex: str) -> frozenset[str]:
        resolved = self.resolved_regexes.get(regex)
        return frozenset() if resolved is None else resolved.topics


def _replace_regex_topics(
    topics: dict[str, Subscribers], old: frozenset[str], new: frozenset[str], step: Step = no_step
) -> None:
    """Count the topics that an expression matches now, instead of those that it matched before.

    Only the differences are counted, because most topics are the same.
    """
    count_topics(topics, stepping(iter(old - new), step), Subscribers(by_regex=-1))
    count_topics(topics, stepping(iter(new - old), step), Subscribers(by_regex=+1))


def is_homogeneous(
    regexes: Mapping[str, int], topics: TopicSubscribers, member_count: int, step: Step = no_step
) -> bool:
    """Whether all members have the same subscription: equal names, or one expression and no names.

    The mappings are copies of the caller: they must not change in a step.
    Kafka: ConsumerGroup.subscriptionType.
    """
    counts = stepping(iter(topics.values()), step)
    if not regexes:
        return all(subscribers.by_name == member_count for subscribers in counts)
    # A member has one expression at most. If all members have this one, there is no other.
    if next(iter(regexes.values())) != member_count:
        return False
    return all(subscribers == ONE_REGEX for subscribers in counts)


def count_in(counter: Counter[K], key: K, delta: int) -> None:
    """Add `delta` to a count. Keys whose count becomes zero are removed."""
    counter[key] += delta
    if not counter[key]:
        del counter[key]


def _count_regex(
    regexes: Counter[str], old: ConsumerMember | None, new: ConsumerMember | None
) -> None:
    for member, delta in ((old, -1), (new, +1)):
        if member is not None and member.subscribed_regex:
            count_in(regexes, member.subscribed_regex, delta)
