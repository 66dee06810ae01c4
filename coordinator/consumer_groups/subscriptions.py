"""What the members of a group are subscribed to, counted: by name, and by regular expression.

Counts make it cheap to say to what a group of a thousand members is subscribed, and whether all
are subscribed to the same, without walking over them. A topic that a regular expression stands for
counts once per expression, not once per member; so an expression's topics go with its last
subscriber, when its resolution is forgotten.

A decision asks "what if this member became that one" and gets a copy. Kafka: the fields of
ModernGroup and ConsumerGroup with these names, SubscriptionCount.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec import Struct

from odradek.coordinator.timers import NEVER_MS

from .member import ConsumerMember


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRegex:
    """The topics that a regular expression stood for when it was last looked at.

    `version` is the offset of the metadata that was looked at, `timestamp_ms` when that was.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class Subscribers(Struct, frozen=True, gc=False):
    """How many subscribe to a topic: members that name it, expressions that stand for it."""

    by_name: int = 0
    by_regex: int = 0


TopicSubscribers = Mapping[str, Subscribers]
NOBODY = Subscribers()
ONE_REGEX = Subscribers(by_regex=1)


class Subscriptions:
    """The subscriptions of one group's members."""

    def __init__(self) -> None:
        self.topics: dict[str, Subscribers] = {}
        self.regex_subscribers: Counter[str] = Counter()
        """Members per regular expression; no expression stands there with none."""
        self.resolved_regexes: dict[str, ResolvedRegex] = {}

    # -- replay ------------------------------------------------------------------------------------

    def member_became(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """A member came (`old` is None), changed, or went (`new` is None)."""
        if _same_subscription(old, new):
            return
        _count_members(self.topics, [old], -1)
        _count_members(self.topics, [new], +1)
        _count_regex(self.regex_subscribers, old, new)

    def regex_became(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """An expression was resolved, or (None) its resolution is forgotten."""
        old = self.resolved_regexes.pop(regex, None)
        if old is not None:
            _count_topics(self.topics, old.topics, Subscribers(by_regex=-1))
        if resolved is not None:
            self.resolved_regexes[regex] = resolved
            _count_topics(self.topics, resolved.topics, Subscribers(by_regex=+1))

    # -- what is -----------------------------------------------------------------------------------

    @property
    def regexes_refreshed_ms(self) -> int:
        """When the expressions were last resolved (always together); NEVER_MS: there are none."""
        return next((r.timestamp_ms for r in self.resolved_regexes.values()), NEVER_MS)

    @property
    def regexes_version(self) -> int:
        """The metadata offset at which they were resolved; 0 where there are none."""
        return next((r.version for r in self.resolved_regexes.values()), 0)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """All topic names that a member is subscribed to; an unresolved expression matches none."""
        resolved = self.resolved_regexes.get(member.subscribed_regex)
        return member.subscribed_topics | resolved.topics if resolved else member.subscribed_topics

    # -- what if -----------------------------------------------------------------------------------

    def topics_if(self, old: ConsumerMember, new: ConsumerMember) -> TopicSubscribers:
        """The topics' subscribers if `old` became `new`.

        The topics of an expression that loses its last subscriber by it are no more.
        """
        topics = dict(self.topics)
        _count_members(topics, [old], -1)
        _count_members(topics, [new], +1)
        regex = old.subscribed_regex
        if regex != new.subscribed_regex and self.regex_subscribers[regex] == 1:
            self._leave_out(topics, [regex])
        return topics

    def topics_without(
        self, members: Iterable[ConsumerMember], regexes: Iterable[str] = ()
    ) -> TopicSubscribers:
        """The topics' subscribers if these members, and these resolutions, were gone."""
        topics = dict(self.topics)
        _count_members(topics, members, -1)
        self._leave_out(topics, regexes)
        return topics

    def topics_if_resolved(self, resolved: Mapping[str, ResolvedRegex]) -> TopicSubscribers:
        """The topics' subscribers if these expressions stood for these topics."""
        topics = dict(self.topics)
        self._leave_out(topics, resolved)
        for one in resolved.values():
            _count_topics(topics, one.topics, Subscribers(by_regex=+1))
        return topics

    def regexes_if(self, old: ConsumerMember, new: ConsumerMember) -> Mapping[str, int]:
        """Members per expression if `old` became `new`."""
        regexes = self.regex_subscribers.copy()
        _count_regex(regexes, old, new)
        return regexes

    def _leave_out(self, topics: dict[str, Subscribers], regexes: Iterable[str]) -> None:
        for regex in regexes:
            resolved = self.resolved_regexes.get(regex)
            if resolved is not None:
                _count_topics(topics, resolved.topics, Subscribers(by_regex=-1))


def is_homogeneous(regexes: Mapping[str, int], topics: TopicSubscribers, member_count: int) -> bool:
    """Whether all members subscribe to the same: the same names, or one expression and no names.

    Kafka: ConsumerGroup.subscriptionType.
    """
    if not regexes:
        return all(subscribers.by_name == member_count for subscribers in topics.values())
    # A member has one expression at most: where one has them all, it is the only one.
    if next(iter(regexes.values())) != member_count:
        return False
    return all(subscribers == ONE_REGEX for subscribers in topics.values())


def _same_subscription(old: ConsumerMember | None, new: ConsumerMember | None) -> bool:
    return (
        old is not None
        and new is not None
        and old.subscribed_topics == new.subscribed_topics
        and old.subscribed_regex == new.subscribed_regex
    )


def _count_members(
    topics: dict[str, Subscribers], members: Iterable[ConsumerMember | None], step: int
) -> None:
    for member in members:
        if member is not None:
            _count_topics(topics, member.subscribed_topics, Subscribers(by_name=step))


def _count_topics(topics: dict[str, Subscribers], names: Iterable[str], step: Subscribers) -> None:
    for name in names:
        before = topics.get(name, NOBODY)
        subscribers = Subscribers(before.by_name + step.by_name, before.by_regex + step.by_regex)
        if subscribers == NOBODY:
            topics.pop(name, None)
        else:
            topics[name] = subscribers


def _count_regex(
    regexes: Counter[str], old: ConsumerMember | None, new: ConsumerMember | None
) -> None:
    if old is not None and old.subscribed_regex:
        regexes[old.subscribed_regex] -= 1
        if not regexes[old.subscribed_regex]:
            del regexes[old.subscribed_regex]
    if new is not None and new.subscribed_regex:
        regexes[new.subscribed_regex] += 1
