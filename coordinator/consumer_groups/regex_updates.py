"""Decides when a group's regular expressions are resolved, and applies the results.

A resolution matches all topic names, so heartbeats do not wait for it. A member with a new
expression joins at once, and the expression matches nothing yet. The resolution runs in the
background. Its result is a separate decision, which writes the topics of each expression and raises
the group epoch if they have changed. All expressions of a group are resolved together, so that they
cause one rebalance. They are resolved again after topics were created or the refresh interval has
passed, but at most once in 10 s, and one resolution at a time.

An expression matches only topics that the client may describe whose heartbeat has started the
resolution. A change of its rights has an effect when the expression is resolved again.

Kafka: GroupMetadataManager.maybeUpdateRegularExpressions, handleRegularExpressionsResult.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial

from odradek.coordinator.any_group.caller import MayDescribe
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Now

from .draft import ConsumerDraft
from .group import ConsumerGroup
from .member import ConsumerMember
from .records import regex_record, regex_tombstone
from .subscription_regex import check_pattern
from .subscriptions import ResolvedRegex

MIN_REFRESH_INTERVAL_MS = 10_000

# Starts to resolve the expressions of a group; the result goes to `RegexUpdates.apply_resolution`.
Resolve = Callable[[str, frozenset[str], MayDescribe], None]


class RegexChange(Enum):
    """How a member's expression has changed."""

    NONE = "unchanged"
    UNRESOLVED = "a new expression, not resolved yet"
    RESOLVED = "a resolved expression, or none any more"


class RegexUpdates:
    """Regular expressions of all groups; keeps only the set of groups being resolved."""

    def __init__(self, topics: ClusterTopics, refresh_interval_ms: int, resolve: Resolve) -> None:
        self._topics = topics
        self._refresh_interval_ms = refresh_interval_ms
        self._resolve = resolve
        self._in_progress: set[str] = set()

    # -- in a heartbeat ----------------------------------------------------------------------------

    def update(
        self,
        draft: ConsumerDraft,
        member: ConsumerMember,
        updated: ConsumerMember,
        may_describe: MayDescribe,
    ) -> RegexChange:
        """Handle a change from `member` to `updated`; start a resolution if one is due.

        The expressions match only topics that the client may describe.

        Raises ApiError INVALID_REGULAR_EXPRESSION.
        """
        change, is_new = _change(draft, member, updated)
        subscriptions = draft.group.subscriptions
        if (is_new or subscriptions.regex_subscribers) and self._may_start(draft):
            regexes = frozenset(subscriptions.regexes_if(member, updated))
            if regexes and (is_new or self._is_due(draft, len(regexes))):
                draft.then.append(partial(self._start, draft.group_id, regexes, may_describe))
        return change

    def _may_start(self, draft: ConsumerDraft) -> bool:
        if draft.group_id in self._in_progress:
            return False
        return _age_ms(draft) > MIN_REFRESH_INTERVAL_MS

    def _is_due(self, draft: ConsumerDraft, regex_count: int) -> bool:
        subscriptions = draft.group.subscriptions
        return (
            regex_count != len(subscriptions.resolved_regexes)
            or subscriptions.regexes_version < self._topics.last_creation_offset
            or _age_ms(draft) > self._refresh_interval_ms
        )

    def _start(self, group_id: str, regexes: frozenset[str], may_describe: MayDescribe) -> None:
        self._in_progress.add(group_id)
        self._resolve(group_id, regexes, may_describe)

    # -- after a resolution ------------------------------------------------------------------------

    def resolution_ended(self, group_id: str) -> None:
        """Note that a resolution has ended, with or without a result."""
        self._in_progress.discard(group_id)

    def apply_resolution(
        self,
        group: ConsumerGroup,
        resolutions: Mapping[str, ResolvedRegex],
        now: Now,
        step: Step = no_step,
    ) -> Outcome[DraftResult[None]]:
        """Write the topics of the expressions; raise the group epoch if they have changed.

        Expressions that have lost their subscribers since are ignored.
        """
        draft = ConsumerDraft(group, now, step)
        change_offset = self._topics.last_change_offset
        before = group.subscriptions.resolved_regexes
        subscribed = {
            regex: resolved
            for regex, resolved in resolutions.items()
            if regex in group.subscriptions.regex_subscribers
        }
        draft.records += (regex_record(group.group_id, *item, step) for item in subscribed.items())
        topics = group.subscriptions.topics_if_resolved(subscribed, step)
        metadata_hash = self._topics.group_hash(topics, step)
        nothing: frozenset[str] = frozenset()
        changed = any(
            resolved.topics != (before[regex].topics if regex in before else nothing)
            for regex, resolved in subscribed.items()
        )
        if changed or metadata_hash != group.metadata_hash:
            draft.bump_epoch(metadata_hash, "its regular expressions match other topics")
            draft.topics_checked_offset = change_offset
        return draft.outcome(None)


def _age_ms(draft: ConsumerDraft) -> int:
    """The time since the group's expressions were resolved."""
    return draft.now.timer_ms - draft.group.regexes_resolved_at.timer_ms


def _change(
    draft: ConsumerDraft, member: ConsumerMember, updated: ConsumerMember
) -> tuple[RegexChange, bool]:
    """How the member's expression has changed, and whether it is new to the group.

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
