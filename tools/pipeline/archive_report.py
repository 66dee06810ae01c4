"""Prints the result of `odradek pipeline archive`."""

from odradek.pipeline.jobs.archive.summary import ArchiveSummary, TopicSummary
from odradek.tools.tables import number, print_each, show_table, size

from .running import EXIT_DONE, EXIT_LOST, EXIT_PROBLEMS

_HEADER = (
    "topic",
    "partitions",
    "records",
    "files",
    "size",
    "merged",
    "dead letters",
    "no record",
    "lost",
    "skipped",
    "waiting",
)
_FIXED_COLUMNS = 5  # these are always shown, the others only if a total is not 0
_LOST = "lost, because it was deleted before it could be archived"


def show_summary(summary: ArchiveSummary, title: str) -> int:
    """Print the table, notes, losses and problems; returns the exit code."""
    rows = [(name, *_cells(topic)) for name, topic in sorted(summary.topics.items())]
    total = ("", *_cells(summary.total()))
    shown = [column for column, cell in enumerate(total) if column < _FIXED_COLUMNS or cell]
    lines = [[line[column] for column in shown] for line in (_HEADER, *rows, total)]
    show_table(title, lines[0], lines[1:-1], lines[-1] if len(rows) > 1 else ())
    print_each("repaired", summary.repaired)
    print_each("note", summary.notes)
    print_each(_LOST, summary.lost)
    print_each("skipped, because it cannot be read", summary.skipped)
    print_each("problem", summary.problems)
    if summary.problems:
        return EXIT_PROBLEMS
    return EXIT_LOST if summary.lost or summary.skipped else EXIT_DONE


def _cells(topic: TopicSummary) -> tuple[str, ...]:
    return (
        number(topic.partitions),
        number(topic.records),
        number(topic.files),
        size(topic.file_bytes),
        number(topic.merged_files),
        number(topic.dead_letters),
        number(topic.absent),
        number(topic.lost),
        number(topic.skipped),
        number(topic.waiting),
    )


def show_plan(summary: ArchiveSummary, offsets: dict[str, int]) -> int:
    """Print what a run would archive; returns the exit code."""
    rows = [
        (
            name,
            number(topic.partitions),
            number(offsets.get(name, 0)),
            size(topic.log_bytes),
            number(topic.lost),
            number(topic.waiting),
        )
        for name, topic in sorted(summary.topics.items())
    ]
    header = ("topic", "partitions", "offsets", "log", "lost", "waiting")
    show_table("would be archived (nothing was written)", header, rows)
    print_each("note", summary.notes)
    print_each(_LOST, summary.lost)
    print_each("problem", summary.problems)
    return EXIT_PROBLEMS if summary.problems else EXIT_DONE
