"""What runs the parts of a job: processes of this machine and Spark keep the same promises."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.process_tasks import ProcessTasks
from odradek.pipeline.jobs.task_runner import TaskRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def numbers(item: int) -> Iterator[int]:
    """Fails for some."""
    if item < 0:
        raise OSError(f"no room for {item}")
    if item > 100:
        time.sleep(item)
    yield from range(item)


def die(item: int) -> Iterator[int]:
    os.kill(os.getpid(), item)
    yield item


def own_pid(_: int) -> Iterator[int]:
    yield os.getpid()


class RunnerCases:
    """A subclass has the fixture `runner`, which runs two parts at once."""

    def test_it_runs_two_parts_at_once(self, runner: TaskRunner) -> None:
        assert runner.parallelism == 2

    def test_a_result_comes_when_its_part_has_ended_and_closing_cancels_the_others(
        self, runner: TaskRunner
    ) -> None:
        results = runner.run(numbers, [3, 1000], "test")
        assert next(results) == (0, [0, 1, 2])
        began = time.monotonic()
        results.close()
        assert time.monotonic() - began < 30

    def test_each_part_is_returned_once_with_its_number(self, runner: TaskRunner) -> None:
        results = sorted(runner.run(numbers, [2, 0, 1, 3, 0], "test"))
        assert results == [(0, [0, 1]), (1, []), (2, [0]), (3, [0, 1, 2]), (4, [])]
        assert list(runner.run(numbers, [], "test")) == []

    def test_the_reason_of_a_failed_part_is_one_line(self, runner: TaskRunner) -> None:
        with pytest.raises(JobError) as raised:
            list(runner.run(numbers, [1, -7], "test"))
        assert str(raised.value) == "test: OSError: no room for -7"

    def test_work_that_cannot_be_pickled_is_an_error(self, runner: TaskRunner) -> None:
        lock = threading.Lock()

        def work(item: int) -> Iterator[int]:
            with lock:
                yield item

        with pytest.raises(JobError, match=r"test: .*pickle"):
            list(runner.run(work, [1], "test"))

    def test_a_part_whose_process_dies_is_an_error(self, runner: TaskRunner) -> None:
        with pytest.raises(JobError, match="test: "):
            list(runner.run(die, [signal.SIGKILL], "test"))


class TestProcesses(RunnerCases):
    @pytest.fixture
    def runner(self) -> Iterator[TaskRunner]:
        with ProcessTasks(2) as tasks:
            yield tasks

    def test_the_next_run_has_the_same_processes(self, runner: TaskRunner) -> None:
        def pids() -> set[int]:
            return {pid for _, [pid] in runner.run(own_pid, [0, 1, 2, 3], "test")}

        first = pids()
        assert pids() <= first
        with pytest.raises(JobError):
            list(runner.run(die, [signal.SIGKILL, signal.SIGKILL], "test"))
        assert not pids() & first

    def test_the_processes_end_with_the_runner(self) -> None:
        with ProcessTasks(1) as tasks:
            [(_, [pid])] = tasks.run(own_pid, [0], "test")
            assert Path(f"/proc/{pid}").exists()
        assert not Path(f"/proc/{pid}").exists()
        with tasks:
            assert list(tasks.run(range, [1], "test")) == [(0, [0])]  # in another process

    def test_the_error_says_how_a_process_died(self, runner: TaskRunner) -> None:
        with pytest.raises(JobError) as raised:
            list(runner.run(die, [signal.SIGKILL], "test"))
        expected = "a worker process was killed by SIGKILL; the system may have run out of memory"
        assert str(raised.value) == f"test: {expected}"
        with pytest.raises(JobError, match=f"killed by signal {signal.SIGRTMIN + 1}"):
            list(runner.run(die, [signal.SIGRTMIN + 1], "test"))
        with pytest.raises(JobError, match="a worker process ended with exit code 3"):
            list(runner.run(os._exit, [3], "test"))

    def test_a_result_that_cannot_be_pickled_is_an_error(self, runner: TaskRunner) -> None:
        with pytest.raises(JobError, match=r"test: .*pickle"):
            list(runner.run(locks, [1], "test"))

    def test_signals_that_end_a_job_do_not_reach_the_first_processes_of_a_program(self) -> None:
        program = (
            "import functools, signal\n"
            "from odradek.pipeline.jobs.process_tasks import ProcessTasks\n"
            "blocked = functools.partial(signal.pthread_sigmask, signal.SIG_BLOCK)\n"
            "for _, signals in ProcessTasks(2).run(blocked, [(), ()], 'test'):\n"
            "    print(sorted(each.name for each in signals))\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.stdout.splitlines() == ["['SIGINT', 'SIGTERM']"] * 2

    @pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
    def test_a_signal_while_processes_start_is_handled_as_at_other_times(self, name: str) -> None:
        """A thread of a library gets it, because this one has blocked it."""
        program = (
            "import os, signal, threading\n"
            "from multiprocessing import util\n"
            "from odradek.pipeline.jobs.process_tasks import ProcessTasks\n"
            f"signal.signal(signal.{name}, lambda *_: print('handled'))\n"
            "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
            "start = util.spawnv_passfds\n"
            "def interrupted(*arguments):\n"
            f"    os.kill(os.getpid(), signal.{name})\n"
            "    return start(*arguments)\n"
            "util.spawnv_passfds = interrupted\n"
            "tasks = ProcessTasks(1)\n"  # it is there until the program ends
            "print(list(tasks.run(range, [2], 'test')))\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert set(done.stdout.splitlines()) == {"handled", "[(0, [0, 1])]"}, done.stderr

    def test_there_are_as_many_as_cores_by_default(self) -> None:
        assert 1 <= ProcessTasks().parallelism <= (os.cpu_count() or 1)

    def test_the_traceback_of_the_worker_is_a_note_of_the_cause(self, runner: TaskRunner) -> None:
        with pytest.raises(JobError) as raised:
            list(runner.run(numbers, [-1], "test"))
        assert raised.value.__cause__ is not None
        assert "in numbers" in raised.value.__cause__.__notes__[0]


def locks(_: int) -> list[threading.Lock]:
    return [threading.Lock()]


class TestSpark(RunnerCases):
    @pytest.fixture
    def runner(self, spark: "SparkSession") -> TaskRunner:
        from odradek.pipeline.jobs.spark_tasks import SparkTasks

        return SparkTasks(spark)


def test_the_reason_that_spark_gives_is_the_last_python_error_or_the_first_line() -> None:
    pytest.importorskip("pyspark")
    from odradek.pipeline.jobs.spark_tasks import short_reason

    both = "py4j: x\nTraceback\n  File\nmod.FirstError: a\n\tat java.lang.Foo(Foo.java:1)\n"
    assert short_reason(RuntimeError(both)) == "FirstError: a"
    assert short_reason(RuntimeError("\nplain\nmore")) == "plain"
    assert short_reason(RuntimeError()) == "RuntimeError"
