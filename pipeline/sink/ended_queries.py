"""Marks of batch queries that have ended: no late attempt of a task may write again.

When a batch query has ended, the groups of its tasks are deleted, because there may be hundreds. An
attempt that Spark has lost sight of would then find no mark, and write its rows again. So the query
is marked first, in a group of its own name, which stays until it expires. An attempt reads the mark
of the query after that of its task: if the task's is gone already, the query's is there.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .marks import Mark, MarkGroup, Place, delete_groups
from .rows import WriteError
from .written_batches import places_of

_logger = logging.getLogger(__name__)


def end_query(
    client: Mapping[str, Any], query: str, tasks: Sequence[str], topics: Collection[str]
) -> None:
    """Mark the query as ended and delete the groups of these tasks. If that fails, they expire."""
    if not tasks:
        return
    try:
        with MarkGroup(client, query) as group:
            group.commit(Mark(*place, 0, "the query has ended") for place in places_of(topics))
    except WriteError as error:
        _logger.warning("the groups %s-* are not deleted: %s", query, error)
    else:
        delete_groups(client, tasks)


def check_not_ended(client: Mapping[str, Any], query: str, places: Collection[Place]) -> None:
    """Raise WriteError if the query has ended."""
    with MarkGroup(client, query) as group:
        if group.read(places):
            raise WriteError(f"{query} has ended: this attempt is late and writes nothing")
