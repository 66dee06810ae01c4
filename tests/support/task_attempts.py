"""Attempts of one task of the sink, which a test drives step by step without sleeping."""

from collections.abc import Callable, Iterator

import pyarrow as pa

from odradek.pipeline.sink.turns import Clock

Hook = Callable[[], object]


class Rows:
    """Rows of a task, in batches. `between` is called in the middle of each of the next passes."""

    def __init__(self, *batches: pa.RecordBatch, between: tuple[Hook, ...] = ()) -> None:
        self._batches = batches
        self._between = list(between)

    are_complete = True

    def collect(self) -> None:
        """Do nothing: they are complete."""

    @property
    def count(self) -> int:
        return sum(batch.num_rows for batch in self._batches)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(self._batches):
            if number == 1 and self._between:
                self._between.pop(0)()
            yield batch


class Waits:
    """A clock whose time passes only while somebody sleeps. `on_sleep` is called at each sleep."""

    def __init__(self, on_sleep: Hook = lambda: None) -> None:
        self.total_s = 0.0
        self._on_sleep = on_sleep
        self.clock = Clock(lambda: self.total_s, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.total_s += seconds
        self._on_sleep()


def rows(*values: str) -> pa.RecordBatch:
    """A batch with these values."""
    return pa.record_batch({"value": list(values)})
