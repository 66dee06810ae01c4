"""Checks that a batch which runs again is divided into the same tasks as before.

Marks are kept by the number of a task. If an earlier run of a batch has written some of its tasks,
and the batch is divided otherwise now (other cores, other options, other files), then a task that
has no mark may have rows that another task has written. Spark does not tell a task how many tasks
there are. So before a task without a mark writes, all tasks that an earlier run has written must
have come again in this run, with the same rows: then its own rows are among the rest.

A run is one start of a stream, or one batch query. Its id is in each mark (written_batches). The
first task of a run that writes claims the query: it commits a mark in the group `odradek-<query>`:

    topic, partition    each topic that the task's rows are written to, 0
    offset              the id of the next batch: the run writes from this batch on
    metadata            {"run": "…", "claim": "…"}: the run, and a random id

In the batch in which a run begins, its tasks look for marks of other runs. The last act before a
commit, after the task's own mark is part of the transaction, is to read the claim again. So a late
task of an earlier run either sees the claim of the next run, and aborts, or its mark is found by
the next run, whose look waits until the transaction has ended.
"""

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

from .marks import GroupReader, Mark, MarkGroup, Place
from .rows import WriteError
from .task_name import TaskName
from .turns import Clock
from .write_options import WriteOptions
from .written_batches import WrittenBatch, last_batch, last_batches, not_of_the_sink, topics_of

_POLL_EVERY_S: Final = 0.5
# Spark reads the settings when it plans a batch, from the session of `readStream`.
SAME_DIVISION: Final = (
    "the cores, the source options, the files and the settings spark.sql.files.… of before, in a "
    "session where no other query changes them"
)


class Division:
    """What an attempt of a task knows about the other tasks of its batch. Raises WriteError."""

    def __init__(
        self,
        options: WriteOptions,
        task: TaskName,
        places: Sequence[Place],
        clock: Clock,
        reader: GroupReader,
    ) -> None:
        self._options = options
        self._task = task
        self._places = places
        self._clock = clock
        self._reader = reader
        self._claims: Sequence[Mark] = ()
        self._group = MarkGroup(options.client, task.query)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._group.__exit__()

    def require_same(self) -> None:
        """Return when the task may write: no other run has written rows that may be its own."""
        self._claims = self._claimed()
        if any(mark.offset > self._task.batch_id for mark in self._claims):
            self._wait_for_written_tasks(besides=())

    def require_claim(self) -> None:
        """Check, with the task's mark in the open transaction, that no other run has begun."""
        while True:
            found = self._group.read(self._places)  # a claim that has expired is missing
            if any(_run_of(mark) != self._task.run for mark in found):
                raise WriteError(
                    f"{self._task.name}: another run of the query has begun to write batch "
                    f"{self._task.batch_id} or a later one. This run writes nothing more"
                )
            if set(found) <= set(self._claims):
                return
            # Another task of this run has claimed the query again, perhaps after another run did.
            self._claims = found
            self._wait_for_written_tasks(besides=(self._task.name,))

    def _claimed(self) -> Sequence[Mark]:
        """Return this run's claims; make those that are missing."""
        found = {(mark.topic, mark.partition): mark for mark in self._group.read(self._places)}
        task = self._task
        later = max((mark.offset - 1 for mark in found.values()), default=-1)
        if later > task.batch_id:
            raise WriteError(
                f"{task.query}: batch {later} was begun already, which is later than batch "
                f"{task.batch_id}: the checkpoint is out of date. Start with a new checkpoint"
            )
        own = {place: mark for place, mark in found.items() if _run_of(mark) == task.run}
        missing = [place for place in self._places if place not in own]
        if not missing:
            return list(own.values())
        metadata = json.dumps({"run": task.run, "claim": str(uuid.uuid4())})
        claims = [Mark(*place, task.batch_id + 1, metadata) for place in missing]
        self._group.commit(claims)
        return [*own.values(), *claims]

    def _wait_for_written_tasks(self, besides: Iterable[str]) -> None:
        """Return when each task that another run has written has come again with the same rows."""
        name = _task_pattern(self._task, self._options)
        listed = self._reader.groups()
        if self._task.query not in listed:  # where the claim is
            raise WriteError(
                f"the broker does not list the group {self._task.query}, so what is written cannot "
                "be found: this client needs READ on all groups that begin with "
                "'transactionalIdPrefix'"
            )
        groups = [each for each in listed if name.fullmatch(each) and each not in besides]
        deadline = self._clock.now() + self._options.repeat_timeout_s
        while groups:
            written = self._written_by_others(self._reader.read(groups, self._places))
            if len(written) < len(groups):
                deadline = self._clock.now() + self._options.repeat_timeout_s
            groups = list(written)
            if not groups or self._options.repeatable_tasks:
                return
            if self._clock.now() >= deadline:
                raise WriteError(self._not_come_again(groups))
            self._clock.sleep(_POLL_EVERY_S)

    def _written_by_others(self, marks: Mapping[str, list[Mark]]) -> dict[str, WrittenBatch]:
        """Return the tasks that another run has written. Raises WriteError if that is hopeless."""
        task, found = self._task, dict[str, WrittenBatch]()
        for name, of_task in marks.items():
            last = last_batch(of_task)
            if last is None or last.batch_id < task.batch_id:
                continue
            if last.batch_id > task.batch_id:
                raise WriteError(out_of_date(name, last.batch_id, task.batch_id))
            if any(each.run == task.run for each in last_batches(of_task)):
                continue
            topics = topics_of(last.batch_id, of_task)
            if name == task.name and topics.isdisjoint(topic for topic, _ in self._places):
                raise WriteError(other_topics(name, last.batch_id, topics, self._places))
            if not name.startswith(f"{task.query}-"):
                raise WriteError(
                    f"{name} has written batch {task.batch_id} before, and now the name is "
                    f"{task.query}-…: set 'transactionalIdPrefix' as it was, or start with a new "
                    "checkpoint"
                )
            found[name] = last
        return found

    def _not_come_again(self, groups: Iterable[str]) -> str:
        numbers = sorted(int(name.rpartition("-")[2]) for name in groups)
        return (
            f"batch {self._task.batch_id} was written in part by an earlier run, and now its tasks "
            f"are others, or wait for a free core: {_listed(map(str, numbers[:10]))} of the tasks "
            f"that were written have not come again within {self._options.repeat_timeout_s:g} s. "
            f"{self._task.name} writes nothing, because some of its rows may be there already. "
            f"Start the query with {SAME_DIVISION}; or with a new checkpoint. Set 'repeatTimeout' "
            "if the rows take long, or 'repeatableTasks' if the source divides a batch into the "
            "same tasks on any number of cores"
        )


def out_of_date(name: str, written: int, batch_id: int) -> str:
    """Return the error of a batch that is older than one that is written."""
    return (
        f"{name} has already written batch {written}, which is later than batch {batch_id}: "
        "the checkpoint is out of date. Start with a new checkpoint"
    )


def other_topics(name: str, batch_id: int, before: Iterable[str], now: Iterable[Place]) -> str:
    """Return the error of a task that has written its batch to topics that it has no rows for."""
    return (
        f"{name} has written batch {batch_id} to {_listed(before)} before, and now it goes to "
        f"{_listed(topic for topic, _ in now)}. Let the batch end with the topics of before, or "
        "start with a new checkpoint. A query whose topics are not deterministic needs "
        "delivery=at-least-once"
    )


def _task_pattern(task: TaskName, options: WriteOptions) -> re.Pattern[str]:
    """Return how the names of the query's tasks look, under any prefix if it is a stream."""
    if not task.is_stream:
        return re.compile(rf"{re.escape(task.query)}-\d+")
    query_id = task.query.removeprefix(f"{options.prefix}-")  # a random UUID
    return re.compile(rf"(?:.*-)?{re.escape(query_id)}-\d+")


def _run_of(claim: Mark) -> Any:
    try:
        return json.loads(claim.metadata)["run"]
    except (ValueError, KeyError, TypeError):
        raise not_of_the_sink(claim) from None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names, key=lambda name: (len(name), name)))
