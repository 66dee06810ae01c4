"""The name of a task, and the batch that it writes."""

from typing import NamedTuple


class TaskName(NamedTuple):
    """`odradek-<query>-<task>` is the same for all attempts of a task, and in all batches.

    `query` is `odradek-<query>`, and `number` that of the task. A `run` is one start of a stream
    or one batch query: its tasks are one division of the rows. A batch query that cannot run again
    `ends`: its name is random.
    """

    query: str
    number: int
    batch_id: int
    run: str = ""
    is_stream: bool = False
    ends: bool = False

    @property
    def name(self) -> str:
        """Transactional id, and group of the task's marks."""
        return f"{self.query}-{self.number}"
