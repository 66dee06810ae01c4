"""Resolves the regular expressions of consumer groups in the background.

A few hundred topic names are matched at a time, between requests. When all are matched, the topics
of the expressions are written, in slices if that takes long (group_decisions.py).
consumer_groups/regex_updates.py decides when it is done and what is written. Kafka:
CoordinatorExecutor.
"""

import asyncio
import logging
from collections.abc import Awaitable, Generator, Mapping
from functools import partial

from odradek.coordinator.any_group.caller import MayDescribe
from odradek.coordinator.consumer_groups.regex_updates import RegexUpdates
from odradek.coordinator.consumer_groups.subscription_regex import resolve_patterns
from odradek.coordinator.consumer_groups.subscriptions import ResolvedRegex
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError

from .group_decisions import GroupDecisions
from .group_shards import GroupShard, GroupShards

logger = logging.getLogger("odradek.groups")

Resolution = Generator[None, None, Mapping[str, ResolvedRegex]]


class RegexResolution:
    """Resolves the expressions of all groups. `updates` starts it."""

    def __init__(
        self,
        shards: GroupShards,
        topics: ClusterTopics,
        refresh_interval_ms: int,
        loop: asyncio.AbstractEventLoop,
        decisions: GroupDecisions,
    ) -> None:
        self.updates = RegexUpdates(topics, refresh_interval_ms, self._start)
        self._shards = shards
        self._topics = topics
        self._loop = loop
        self._decisions = decisions

    def _start(self, group_id: str, regexes: frozenset[str], may_describe: MayDescribe) -> None:
        """Start to resolve a group's expressions against the current topics."""
        steps = resolve_patterns(
            regexes,
            self._topics.sorted_names(),
            version=self._topics.version,
            now_ms=self._decisions.clock().wall_ms,
            may_describe=may_describe,
        )
        self._loop.call_soon(self._next_step, group_id, steps)

    def _next_step(self, group_id: str, steps: Resolution) -> None:
        try:
            next(steps)
        except StopIteration as end:
            self._write(group_id, end.value)
        except BaseException:
            self.updates.resolution_ended(group_id)
            raise
        else:
            self._loop.call_soon(self._next_step, group_id, steps)

    def _write(self, group_id: str, resolved: Mapping[str, ResolvedRegex]) -> None:
        """Write the resolved topics. After a failed write a later heartbeat resolves them again."""
        decide = partial(self._decide, group_id, resolved)
        pending = None
        try:
            shard = self._shards.of(group_id)
            pending = self._decisions.decide(shard, group_id, decide, self._decisions.clock())
        except ApiError as error:
            _log_failure(group_id, error)
        finally:
            if pending is None:
                self.updates.resolution_ended(group_id)
        if pending is not None:
            self._decisions.keep(self._wait_for(pending, group_id))

    def _decide(
        self,
        group_id: str,
        resolved: Mapping[str, ResolvedRegex],
        shard: GroupShard,
        now: Now,
        step: Step,
    ) -> Outcome[DraftResult[None]]:
        group = shard.state.consumer_group(group_id)
        return self.updates.apply_resolution(group, resolved, now, step)

    async def _wait_for(self, pending: Awaitable[None], group_id: str) -> None:
        try:
            await pending
        except ApiError as error:
            _log_failure(group_id, error)
        finally:
            self.updates.resolution_ended(group_id)


def _log_failure(group_id: str, error: ApiError) -> None:
    logger.warning("group %s: resolved expressions could not be written: %s", group_id, error)
