"""Marks of batch queries that have ended: no late attempt of a task may write again.

A mark is an offset committed for a consumer group (marks.py). Each task of a query has a group. Its
mark says that the rows of the task are written. The groups of a query that has ended are deleted,
because there may be hundreds. An attempt of a task that Spark no longer knows would then find no
mark, and write its rows again. So the query has a mark, too, in a group of its own name, which is
not deleted and expires.

- At the end of a query: 1. the query is marked. 2. The groups of its tasks are deleted.
- In an attempt of a task: 1. it reads the mark of the task. 2. It reads the mark of the query.

If the attempt finds the task's group deleted already, it finds the mark of the query.
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
