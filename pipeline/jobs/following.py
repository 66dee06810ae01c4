"""Implements `odradek pipeline tables`: keeps an archive a few seconds behind a broker.

Each round archives what has been written since the last one, to the log's end. Rounds never
overlap. A long round leaves more for the next one. Memory is bounded by the size of a task. Small
files are merged beside the rounds by a thread with processes of its own. The commits of both may
come in any order (see table/archive_table.py).

A round that failed is tried again, after pauses that grow. If storage is unreachable for an hour,
the archive is only late. What was committed stays. If merging fails, the rounds go on. The reason
is a problem of each round until a later merge has succeeded.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from odradek.pipeline.jobs import JobError, OvertakenError
from odradek.pipeline.jobs.archive.job import ArchiveRun, ArchiveSettings
from odradek.pipeline.jobs.archive.summary import ArchiveSummary
from odradek.storage.files import Files

from .task_runner import TaskRunner

_logger = logging.getLogger(__name__)

_MAX_PAUSE_S = 60.0  # after failed rounds, if rounds are not further apart anyway


class Round(NamedTuple):
    """What a round has done, and why it failed: `error`, or "".

    `seconds`: how long it took. At its end the table lacks what was written during that time.
    """

    summary: ArchiveSummary
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Seconds between the starts of two rounds, and between two merges of small files."""

    round_s: float = 5.0
    merge_s: float = 600.0


class FollowingArchive:
    """Archives round by round until it is told to stop. `report` is called after each round."""

    def __init__(
        self,
        runner: TaskRunner,
        merging_runner: TaskRunner,
        settings: ArchiveSettings,
        report: Callable[[Round], None],
        *,
        intervals: Intervals | None = None,
        files: Files | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the table, which is created if there is none. Raises JobError, OSError."""
        self._settings = replace(settings, until_end=True, waits_for_topics=True)
        self._run = ArchiveRun(runner, self._settings, files=files)
        self._merging_runner = merging_runner
        self._report = report
        self._intervals = intervals or Intervals()
        self._files = files
        self._clock = clock
        self._merging: threading.Thread | None = None
        self._merge_problems: list[str] = []  # of the last merge that has ended

    def run(self, stop: threading.Event) -> None:
        """Archive until `stop` is set."""
        pause_s = self._intervals.round_s
        max_pause_s = max(_MAX_PAUSE_S, self._intervals.round_s)
        merged_at = self._clock()
        while not stop.is_set():
            began = self._clock()
            done = self._round(began)
            self._report(done)
            if self._clock() - merged_at >= self._intervals.merge_s:
                merged_at = self._clock()
                self._begin_merge()
            pause_s = min(2 * pause_s, max_pause_s) if done.error else self._intervals.round_s
            stop.wait(max(0.0, began + pause_s - self._clock()))
        if self._merging is not None:
            self._merging.join()

    def _round(self, began: float) -> Round:
        error = ""
        try:
            summary = self._run.read_again()
        except OvertakenError as other:
            summary = self._run.summary
            summary.notes.append(str(other))
        except (JobError, OSError) as failure:
            error, summary = str(failure), self._run.summary
        except Exception as failure:  # like one of Arrow, for a damaged file
            _logger.exception("a round failed")
            error, summary = repr(failure), self._run.summary
        summary.problems += self._merge_problems
        return Round(summary, self._clock() - began, error)

    def _begin_merge(self) -> None:
        if self._merging is None or not self._merging.is_alive():
            self._merging = threading.Thread(target=self._merge, name="merge", daemon=True)
            self._merging.start()

    def _merge(self) -> None:
        try:
            run = ArchiveRun(self._merging_runner, self._settings, files=self._files)
            run.compact()
            self._merge_problems = run.summary.problems
        except (JobError, OSError) as failure:
            self._merge_problems = [f"small files were not merged: {failure}"]
        except Exception as failure:
            _logger.exception("small files were not merged")
            self._merge_problems = [f"small files were not merged: {failure!r}"]
