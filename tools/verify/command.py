"""Runs `odradek verify`, and prints the findings.

Exit codes: 0 no problems (there may be notes), 1 problems, 2 wrong usage.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from odradek.pipeline.jobs.process_tasks import ProcessTasks
from odradek.pipeline.jobs.progress import progress_bar
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.files import Files
from odradek.tools.pipeline.running import EXIT_DONE, EXIT_PROBLEMS

from .job import VerifySettings, plan_verify, run_verify
from .report import show_json, show_plan, show_report


def run(
    directories: Sequence[Path],
    processes: int | None,
    topics: TopicChoice | None,
    *,
    deep: bool,
    as_json: bool,
    dry_run: bool,
) -> int:
    """Check the directories, or print what would be checked; return the exit code."""
    now_ms = time.time_ns() // 1_000_000
    settings = VerifySettings(log_directories=directories, topics=topics, deep=deep, now_ms=now_ms)
    if dry_run:
        show_plan(plan_verify(settings), as_json=as_json)
        return EXIT_DONE
    started = time.monotonic()
    with ProcessTasks(processes) as runner, progress_bar("logs") as bar:
        report = run_verify(runner, settings, bar, Files())
    if as_json:
        show_json(report)
    else:
        show_report(report, f"verified in {time.monotonic() - started:.1f} s")
    return EXIT_PROBLEMS if report.totals.problems else EXIT_DONE
