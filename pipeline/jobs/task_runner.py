"""The interface that runs the parts of a job: in processes on this machine, or on Spark."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class TaskRunner(Protocol):
    """Runs the parts of a job. A part may run more than once, and on another machine."""

    @property
    def parallelism(self) -> int:
        """How many parts run at once."""

    def run(
        self, work: Callable[[Item], Iterable[Result]], items: Sequence[Item], description: str
    ) -> Generator[tuple[int, list[Result]], None, None]:
        """Yield each item's number and results, once, in the order in which they are completed.

        `work` and `items` are pickled. Raises JobError if an item fails for good; others may have
        been yielded before. Closing the iterator cancels what is still running.
        """
