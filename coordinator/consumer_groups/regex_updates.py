"""Subscriptions by regular expression: when a group's expressions are resolved, and what follows.

Resolving means matching all names of topics, so it is not done while a heartbeat waits. A member
that brings a new expression is in the group at once, subscribed to nothing by it; the resolution
runs behind, and its result is a decision of its own: it writes what each expression stands for, and
raises the group's epoch if that has changed anything. All of a group's expressions are resolved
together, so that they cause one rebalance; again when topics have been created, or some time has
passed; but not more often than every 10 s, and one resolution at a time.

Kafka: GroupMetadataManager.maybeUpdateRegularExpressions, handleRegularExpressionsResult.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial

from odradek.coordinator.outcome import Outcome
from odradek.coordinator.timers import Now

from .draft import Decision, Draft
from .group import ConsumerGroup
from .member import ConsumerMember
from .records import regex_record, regex_tombstone
from .subscription_regex import check_pattern
from .subscriptions import ResolvedRegex
from .topics_view import ClusterTopics

MIN_REFRESH_INTERVAL_MS = 10_000

# Begins to resolve the expressions of a group; the result comes to `RegexUpdates.resolved`.
Resolve = Callable[[str, frozenset[str]], None]


class RegexChange(Enum):
    """What became of a member's expression."""

    NONE = "the same as before"
    UNRESOLVED = "a new one, not resolved yet"
    RESOLVED = "one whose topics are known, or none any more"


class RegexUpdates:
    """Decides for all groups; remembers only whose expressions are being resolved."""

    def __init__(self, topics: ClusterTopics, refresh_interval_ms: int, resolve: Resolve) -> None:
        self._topics = topics
        self._refresh_interval_ms = refresh_interval_ms
        self._resolve = resolve
        self._in_progress: set[str] = set()

    # -- in a heartbeat ----------------------------------------------------------------------------

    def update(self, draft: Draft, member: ConsumerMember, updated: ConsumerMember) -> RegexChange:
        """A member has become `updated`; its group's expressions are resolved if it is time.

        Raises ApiError INVALID_REGULAR_EXPRESSION.
        """
        change, is_new = _change(draft, member, updated)
        subscriptions = draft.group.subscriptions
        if (is_new or subscriptions.regex_subscribers) and self._may_start(draft):
            regexes = frozenset(subscriptions.regexes_if(member, updated))
            if regexes and (is_new or self._is_due(draft, len(regexes))):
                draft.then.append(partial(self._start, draft.group_id, regexes))
        return change

    def _may_start(self, draft: Draft) -> bool:
        if draft.group_id in self._in_progress:
            return False
        return _age_ms(draft) > MIN_REFRESH_INTERVAL_MS

    def _is_due(self, draft: Draft, regex_count: int) -> bool:
        subscriptions = draft.group.subscriptions
        return (
            regex_count != len(subscriptions.resolved_regexes)
            or subscriptions.regexes_version < self._topics.last_creation_offset
            or _age_ms(draft) > self._refresh_interval_ms
        )

    def _start(self, group_id: str, regexes: frozenset[str]) -> None:
        self._in_progress.add(group_id)
        self._resolve(group_id, regexes)

    # -- when they are resolved --------------------------------------------------------------------

    def resolution_ended(self, group_id: str) -> None:
        """A resolution has come to its end, whatever it was."""
        self._in_progress.discard(group_id)

    def apply_resolution(
        self, group: ConsumerGroup, found: Mapping[str, ResolvedRegex], now: Now
    ) -> Outcome[Decision[None]]:
        """Write what expressions stand for; raise the group's epoch if that is news to it."""
        draft = Draft(group, now)
        before = group.subscriptions.resolved_regexes
        wanted = {
            regex: resolved
            for regex, resolved in found.items()
            if regex in group.subscriptions.regex_subscribers
        }
        draft.records += (regex_record(group.group_id, *item) for item in wanted.items())
        metadata_hash = self._topics.group_hash(group.subscriptions.topics_if_resolved(wanted))
        nothing: frozenset[str] = frozenset()
        changed = any(
            resolved.topics != (before[regex].topics if regex in before else nothing)
            for regex, resolved in wanted.items()
        )
        if changed or metadata_hash != group.metadata_hash:
            draft.bump_epoch(metadata_hash, "its expressions stand for other topics")
            draft.topics_seen_offset = self._topics.last_change_offset
        return draft.outcome(None)


def _age_ms(draft: Draft) -> int:
    """How long ago the group's expressions were resolved."""
    return draft.now.timer_ms - draft.group.regexes_resolved_at.timer_ms


def _change(
    draft: Draft, member: ConsumerMember, updated: ConsumerMember
) -> tuple[RegexChange, bool]:
    """What became of the expression, and whether it is new to the group.

    Raises ApiError INVALID_REGULAR_EXPRESSION.
    """
    subscriptions = draft.group.subscriptions
    old, new = member.subscribed_regex, updated.subscribed_regex
    if old == new:
        return RegexChange.NONE, False
    if old and subscriptions.regex_subscribers[old] == 1:
        draft.records.append(regex_tombstone(draft.group_id, old))
    if not new:
        return RegexChange.RESOLVED, False
    if not subscriptions.regex_subscribers[new]:
        check_pattern(new)
        return RegexChange.UNRESOLVED, True
    known = new in subscriptions.resolved_regexes
    return RegexChange.RESOLVED if known else RegexChange.UNRESOLVED, False
