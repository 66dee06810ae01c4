"""What a job needs of whoever runs its parts: Spark, or a test."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class TaskRunner(Protocol):
    """Runs the parts of a job, each perhaps more than once, and perhaps far away."""

    @property
    def parallelism(self) -> int:
        """How many parts run at once."""

    def run(
        self,
        work: Callable[[Item], Iterable[Result]],
        items: Sequence[Item],
        description: str,
    ) -> Generator[tuple[int, list[Result]], None, None]:
        """The results of each item with its number, as they come, each item once.

        `work` and `items` are pickled. Raises JobError where an item fails for good; the results of
        others may have been handed on before. Closing the iterator cancels what still runs.
        """
