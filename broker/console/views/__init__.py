"""The views of the console: for each one a module with its endpoints, their types and handlers."""

from __future__ import annotations

from odradek.broker.console.endpoints import Endpoint

from . import (
    group,
    group_changes,
    groups,
    overview,
    producers,
    segments,
    topic,
    topic_config,
    topics,
    transactions,
)

ENDPOINTS: tuple[Endpoint, ...] = (
    *overview.ENDPOINTS,
    *topics.ENDPOINTS,
    *topic.ENDPOINTS,
    *topic_config.ENDPOINTS,
    *segments.ENDPOINTS,
    *producers.ENDPOINTS,
    *transactions.ENDPOINTS,
    *groups.ENDPOINTS,
    *group.ENDPOINTS,
    *group_changes.ENDPOINTS,
)
