"""What `odradek pipeline archive` tells."""

from odradek.pipeline.jobs.archive.summary import ArchiveSummary, TopicSummary

from .running import EXIT_DONE, EXIT_LOST, EXIT_PROBLEMS
from .tables import number, say_each, show_table, size

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
    "waiting",
)
_ALWAYS = 5  # so many columns are shown; the others where there is something in them


def show_summary(summary: ArchiveSummary, title: str) -> int:
    """The table, and what is worth a word; the exit code."""
    rows = [(name, *_cells(topic)) for name, topic in sorted(summary.topics.items())]
    total = ("", *_cells(summary.total()))
    told = [column for column, cell in enumerate(total) if column < _ALWAYS or cell]
    lines = [[line[column] for column in told] for line in (_HEADER, *rows, total)]
    show_table(title, lines[0], lines[1:-1], lines[-1] if len(rows) > 1 else ())
    say_each("note", summary.notes)
    say_each("lost, for it was deleted before it could be archived", summary.lost)
    say_each("problem", summary.problems)
    if summary.problems:
        return EXIT_PROBLEMS
    return EXIT_LOST if summary.lost else EXIT_DONE


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
        number(topic.waiting),
    )


def show_plan(summary: ArchiveSummary, offsets: dict[str, int]) -> int:
    """What a run would take; the exit code."""
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
    say_each("lost, for it was deleted before it could be archived", summary.lost)
    say_each("problem", summary.problems)
    return EXIT_PROBLEMS if summary.problems else EXIT_DONE
