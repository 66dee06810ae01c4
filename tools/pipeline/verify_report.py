"""Prints the result of `odradek pipeline verify`: a table by topic, then each finding."""

from collections.abc import Iterable, Sequence

import typer

from odradek.pipeline.jobs.verify.findings import Finding, Severity
from odradek.pipeline.jobs.verify.job import VerifyReport
from odradek.pipeline.jobs.verify.partition_join import PartitionVerdict
from odradek.pipeline.jobs.verify.plan import PartitionListing
from odradek.tools.tables import number, print_each, print_json, show_table, size

from .running import EXIT_DONE, EXIT_PROBLEMS

_HEADER = (
    "topic",
    "partitions",
    "segments",
    "size",
    "batches",
    "records",
    "cleaned away",
    "producers",
    "open txns",
    "problems",
    "notes",
)
_SUMMED = (
    "segments",
    "log_bytes",
    "batches",
    "records",
    "cleaned_gaps",
    "cleaned_offsets",
    "producers",
    "open_transactions",
)


def show_report(report: VerifyReport, title: str) -> int:
    """Print the table, the findings and a verdict; returns the exit code."""
    topics = _by_topic(report.partitions)
    rows = [(name, *_cells(verdicts)) for name, verdicts in topics.items()]
    total = ("", *_cells(report.partitions)) if len(rows) > 1 else ()
    show_table(title, _HEADER, rows, total)
    for finding in report.findings:
        colour = "red" if finding.severity is Severity.PROBLEM else "yellow"
        typer.secho(finding_line(finding), fg=colour)
    _say_unsettled(report)
    typer.echo(_verdict(report))
    return EXIT_PROBLEMS if report.problems else EXIT_DONE


def finding_line(finding: Finding) -> str:
    """`problem (gap): PATH: byte 0, offset 100: what is wrong (and 3 more like it)`."""
    places = [f"byte {finding.position}"] if finding.position is not None else []
    places += [f"offset {finding.offset}"] if finding.offset is not None else []
    place = f"{', '.join(places)}: " if places else ""
    more = f" (and {finding.more} more like it)" if finding.more else ""
    return f"{finding.severity} ({finding.kind}): {finding.path}: {place}{finding.what}{more}"


def _verdict(report: VerifyReport) -> str:
    running = "a broker is running on it; " if report.is_running else ""
    if not report.problems:
        return f"{running}sound, {_counted(report.notes, 'note')}"
    return f"{running}{_counted(report.problems, 'problem')}, {_counted(report.notes, 'note')}"


def _counted(count: int, one: str) -> str:
    return f"{count} {one}{'' if count == 1 else 's'}"


def _say_unsettled(report: VerifyReport) -> None:
    names = [f"{topic}-{partition}" for topic, partition in report.unsettled]
    print_each(
        "kept changing during the check, so the result is not reliable; run again for", names
    )


def _by_topic(verdicts: Iterable[PartitionVerdict]) -> dict[str, list[PartitionVerdict]]:
    topics: dict[str, list[PartitionVerdict]] = {}
    for verdict in verdicts:
        topics.setdefault(verdict.partition[0], []).append(verdict)
    return topics


def _cells(verdicts: Sequence[PartitionVerdict]) -> tuple[str, ...]:
    sums = _sums(verdicts)
    return (
        number(len(verdicts)),
        number(sums["segments"]),
        size(sums["log_bytes"]),
        number(sums["batches"]),
        number(sums["records"]),
        number(sums["cleaned_offsets"]),
        number(sums["producers"]),
        number(sums["open_transactions"]),
        number(_count(verdicts, Severity.PROBLEM)),
        number(_count(verdicts, Severity.NOTE)),
    )


def _sums(verdicts: Iterable[PartitionVerdict]) -> dict[str, int]:
    each = list(verdicts)
    return {name: sum(getattr(verdict, name) for verdict in each) for name in _SUMMED}


def _count(verdicts: Iterable[PartitionVerdict], severity: Severity) -> int:
    found = [finding for verdict in verdicts for finding in verdict.findings]
    return sum(1 + finding.more for finding in found if finding.severity is severity)


def show_json(report: VerifyReport) -> int:
    """Print everything as one JSON object; returns the exit code."""
    topics = [
        {
            "topic": name,
            "partitions": len(verdicts),
            **_camel(_sums(verdicts)),
            "problems": _count(verdicts, Severity.PROBLEM),
            "notes": _count(verdicts, Severity.NOTE),
        }
        for name, verdicts in _by_topic(report.partitions).items()
    ]
    shown = {
        "sound": not report.problems,
        "brokerIsRunning": report.is_running,
        "problems": report.problems,
        "notes": report.notes,
        "topics": topics,
        "findings": [_finding(finding) for finding in report.findings],
        "unsettled": [f"{topic}-{partition}" for topic, partition in report.unsettled],
    }
    print_json(shown)
    return EXIT_PROBLEMS if report.problems else EXIT_DONE


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "type": finding.severity.value,
        "kind": finding.kind.value,
        "path": finding.path,
        "position": finding.position,
        "offset": finding.offset,
        "what": finding.what,
        "more": finding.more,
    }


def _camel(sums: dict[str, int]) -> dict[str, int]:
    def named(name: str) -> str:
        first, *others = name.split("_")
        return first + "".join(map(str.capitalize, others))

    return {named(name): value for name, value in sums.items()}


def show_plan(listings: Sequence[PartitionListing], *, as_json: bool) -> int:
    """Print what would be checked; returns the exit code."""
    topics: dict[str, list[PartitionListing]] = {}
    for listing in listings:
        topics.setdefault(listing.partition[0], []).append(listing)
    if as_json:
        plan = [{"topic": name, **_amounts(each)} for name, each in sorted(topics.items())]
        print_json({"topics": plan})
        return EXIT_DONE
    rows = [
        (name, number(found["partitions"]), number(found["segments"]), size(found["logBytes"]))
        for name, found in ((name, _amounts(each)) for name, each in sorted(topics.items()))
    ]
    show_table("would be verified", ("topic", "partitions", "segments", "size"), rows)
    return EXIT_DONE


def _amounts(listings: Sequence[PartitionListing]) -> dict[str, int]:
    works = [work for listing in listings for work in listing.segments]
    return {
        "partitions": len(listings),
        "segments": len(works),
        "logBytes": sum(work.size_bytes for work in works),
    }
