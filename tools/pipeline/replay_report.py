"""Prints the result of `odradek pipeline replay`."""

from odradek.pipeline.jobs.replay.job import ReplaySummary
from odradek.pipeline.jobs.replay.sending import ReplayResult
from odradek.tools.tables import number, print_each, show_table

from .running import EXIT_DONE

_HEADER = ("partition", "to", "records", "by this run", "next offset")


def show_summary(summary: ReplaySummary, title: str) -> int:
    """Print how many records were written to which offsets; returns the exit code."""
    rows = [_row(each) for each in summary.results]
    records = number(sum(each.progress.records for each in summary.results))
    total = ("", "", records, "", "") if len(rows) > 1 else ()
    show_table(title, _HEADER, rows, total)
    changed = sum(each.changed_timestamps for each in summary.results)
    notes = [f"the timestamp of {changed} records was changed from 0 to 1"] if changed else []
    print_each("note", summary.notes + notes)
    return EXIT_DONE


def _row(each: ReplayResult) -> tuple[str, ...]:
    progress = each.progress
    return (
        str(each.source),
        f"{each.target}-{each.source.partition}",
        f"{progress.records:,}",
        number(progress.records - each.before.records),
        str(progress.next_offset),
    )
