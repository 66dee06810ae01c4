"""The views of the console: for each one a module with its endpoints, their types and handlers."""

from __future__ import annotations

from odradek.broker.console.endpoints import Endpoint

from . import (
    acls,
    connections,
    group,
    group_changes,
    groups,
    log,
    maintenance,
    messages,
    overview,
    producers,
    quotas,
    segments,
    tokens,
    topic,
    topic_config,
    topics,
    transactions,
    users,
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
    *connections.ENDPOINTS,
    *acls.ENDPOINTS,
    *users.ENDPOINTS,
    *quotas.ENDPOINTS,
    *tokens.ENDPOINTS,
    *maintenance.ENDPOINTS,
    *log.ENDPOINTS,
    *messages.ENDPOINTS,
)
