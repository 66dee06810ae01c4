"""Runs the parts of a job in processes on this machine, without Spark and Java.

Each worker process has its own pipe and works on one item at a time. When a worker dies, even while
it sends a result, its pipe ends and the job fails. `ProcessPoolExecutor` was rejected: its workers
share one result queue. A worker that is killed while it writes there leaves the reader waiting
forever.

Workers are spawned, not forked, because Arrow and librdkafka start threads in this process. Workers
end when this process ends, however it ends. Control-C and SIGTERM, which a terminal or systemd
sends to all processes of a job, are handled by this process alone: workers block both, and are
killed when the iterator of results is closed.
"""

import atexit
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Self, TypeVar

from odradek.pipeline.jobs import JobError

Item = TypeVar("Item")
Result = TypeVar("Result")
_ENDING = (signal.SIGINT, signal.SIGTERM)
_SPAWN = multiprocessing.get_context("spawn")


class ProcessTasks:
    """A TaskRunner whose parts run in worker processes, by default one for each core.

    After a run its processes stay, and the next run uses them. Leaving the context ends them.
    """

    def __init__(self, processes: int | None = None) -> None:
        """Raises JobError if `processes` is below 1."""
        if processes is not None and processes < 1:
            raise JobError(f"the number of processes must be 1 or more, not {processes}")
        self._processes = processes or _available_cores()
        self._idle: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        idle, self._idle = self._idle, []
        _end(idle)

    @property
    def parallelism(self) -> int:
        """See TaskRunner."""
        return self._processes

    def run(
        self, work: Callable[[Item], Iterable[Result]], items: Sequence[Item], description: str
    ) -> Generator[tuple[int, list[Result]], None, None]:
        """See TaskRunner. A part runs once; it is not tried again when it fails."""
        workers: list[_Worker] = []
        try:
            count = min(self._processes, len(items))
            workers += (self._idle.pop() if self._idle else _Worker() for _ in range(count))
            yield from _results(workers, work, items)
            self._idle += workers
            workers = []
        except _PartError as error:
            raise JobError(f"{description}: {error}") from error
        finally:
            _end(workers)  # they may be working, or have died


class _PartError(Exception):
    """An item failed; the message is the reason."""


def _available_cores() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _results(
    workers: Sequence["_Worker"], work: Callable[[Any], Iterable[Any]], items: Sequence[Any]
) -> Iterator[tuple[int, list[Any]]]:
    waiting = iter(enumerate(items))
    busy: dict[Connection, tuple[_Worker, int]] = {}

    def give_next(worker: _Worker) -> None:
        index, item = next(waiting, (None, None))
        if index is not None:
            worker.start(work, item)
            busy[worker.pipe] = worker, index

    for worker in workers:
        give_next(worker)
    while busy:
        ended = []
        for pipe in wait(list(busy)):
            assert isinstance(pipe, Connection)
            worker, index = busy.pop(pipe)
            ended.append((index, worker.result()))
            give_next(worker)  # before the caller takes its time with the results
        yield from ended


def _end(workers: Sequence["_Worker"]) -> None:
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.close()


class _Worker:
    """A worker process, seen from the process that runs the job."""

    def __init__(self) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
        with _signals_blocked():  # a child inherits the mask
            self._process.start()
        atexit.register(self.kill)  # before multiprocessing sends SIGTERM, and waits for its end
        theirs.close()  # so the pipe ends when the worker does

    def start(self, work: Callable[[Any], Iterable[Any]], item: object) -> None:
        """Let it work on an item; it must not be working. Raises _PartError."""
        try:
            request = pickle.dumps((work, item))
        except Exception as error:  # its type depends on what cannot be pickled
            raise _PartError(f"cannot pickle the work: {error}") from error
        with suppress(OSError):  # if the worker has died, result() raises
            self.pipe.send_bytes(request)

    def result(self) -> list[Any]:
        """Wait for the results of the item. Raises _PartError."""
        try:
            results, reason, trace = pickle.loads(self.pipe.recv_bytes())
        except (EOFError, OSError) as error:
            self._process.join()
            raise _PartError(_reason_of_death(self._process.exitcode)) from error
        if reason is not None:
            failure = _PartError(reason)
            failure.add_note(trace)
            raise failure
        return list(results)

    def kill(self) -> None:
        """Kill it, without waiting for its end."""
        self._process.kill()

    def close(self) -> None:
        """Wait for the end of the killed process."""
        atexit.unregister(self.kill)
        self._process.join()
        self._process.close()
        self.pipe.close()


def _reason_of_death(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"a worker process ended with exit code {exit_code}"
    number = -exit_code
    # Real-time signals have no names.
    known = {int(each): each.name for each in signal.Signals}
    hint = "; the system may have run out of memory" if number == signal.SIGKILL else ""
    return f"a worker process was killed by {known.get(number, f'signal {number}')}{hint}"


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block the signals that end a job for the children that are started inside.

    Another thread of this process, such as one of a library, may still receive one. It is noted,
    and raised again at the end.
    """
    resource_tracker.ensure_running()  # else the first start would start it, which unblocks them
    is_main = threading.current_thread() is threading.main_thread()
    came: set[int] = set()
    handlers = (
        {each: signal.signal(each, lambda number, _: came.add(number)) for each in _ENDING}
        if is_main
        else {}
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    for each in came:
        signal.raise_signal(each)


def _serve(pipe: Connection) -> None:
    """Work on items until the other process ends. Runs in the worker."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Arrow would start as many threads as there are cores, in each worker.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _answer(request: bytes) -> bytes:
    try:
        work, item = pickle.loads(request)
        return pickle.dumps((list(work(item)), None, None))
    except Exception as error:  # noqa: BLE001 # the root of a worker; the other process raises it
        reason = f"{type(error).__name__}: {error}"
        return pickle.dumps((None, reason, traceback.format_exc()))
