"""The name of a task, and the batch that it writes."""

from typing import NamedTuple


class TaskName(NamedTuple):
    """Which task of which query writes, and which batch.

    `query` is `<prefix>-<id>`: the id of a streaming query, the name that the user gives a batch
    query (txnAppId), or a random id. `number` is the task's partition in Spark. So `name` is the
    same for all attempts of a task, and in all batches of a query.

    `run` is the id of one start of a stream, or of one batch query. Another run may divide the rows
    of a batch among its tasks in another way (division.py). `ends`: the id in `query` is random, so
    no later run has it. The marks of its tasks are deleted at its end (ended_queries.py).
    """

    query: str
    number: int
    batch_id: int
    run: str = ""
    is_stream: bool = False
    ends: bool = False

    @property
    def name(self) -> str:
        """The transactional id, and the group whose offsets say what is written (marks.py)."""
        return f"{self.query}-{self.number}"
