"""Prints the result of a verification: a table by topic, then each finding; or one JSON object."""

from collections.abc import Mapping
from dataclasses import asdict

import typer

from odradek.tools.tables import counted, number, print_json, show_table, size

from .findings import Finding, Severity, Totals
from .job import VerifyReport

_HEADER = (
    "topic",
    "logs",
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


def show_report(report: VerifyReport, title: str) -> None:
    """Print the table, the findings and a verdict."""
    rows = [(name, *_cells(totals)) for name, totals in report.topics.items()]
    total = ("", *_cells(report.totals)) if len(rows) > 1 else ()
    show_table(title, _HEADER, rows, total)
    for finding in report.findings:
        colour = "red" if finding.severity is Severity.PROBLEM else "yellow"
        typer.secho(finding_line(finding), fg=colour)
    typer.echo(_verdict(report))


def finding_line(finding: Finding) -> str:
    """`problem (gap): PATH: byte 0, offset 100: what is wrong (and 3 more like it). At start: …`"""
    places = [f"byte {finding.position}"] if finding.position is not None else []
    places += [f"offset {finding.offset}"] if finding.offset is not None else []
    place = f"{', '.join(places)}: " if places else ""
    more = f" (and {finding.more} more like it)" if finding.more else ""
    line = f"{finding.severity} ({finding.kind}): {finding.path}: {place}{finding.what}{more}"
    return f"{line}. At start: {finding.at_start}" if finding.at_start else line


def _cells(totals: Totals) -> tuple[str, ...]:
    return (
        number(totals.partitions),
        number(totals.segments),
        size(totals.log_bytes),
        number(totals.batches),
        number(totals.records),
        number(totals.cleaned_offsets),
        number(totals.producers),
        number(totals.open_transactions),
        number(totals.problems),
        number(totals.notes),
    )


def _verdict(report: VerifyReport) -> str:
    in_use = "a broker is running on it; " if report.is_in_use else ""
    totals = report.totals
    problems = counted(totals.problems, "problem") if totals.problems else "sound"
    return f"{in_use}{problems}, {counted(totals.notes, 'note')}"


def show_json(report: VerifyReport) -> None:
    """Print everything as one JSON object."""
    shown = {
        "sound": not report.totals.problems,
        "brokerIsRunning": report.is_in_use,
        **_camel(asdict(report.totals)),
        "topics": _topics(report.topics),
        "findings": [_finding(finding) for finding in report.findings],
    }
    print_json(shown)


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "type": finding.severity.value,
        "kind": finding.kind.value,
        "path": str(finding.path),
        "position": finding.position,
        "offset": finding.offset,
        "what": finding.what,
        "more": finding.more,
        "atStart": finding.at_start or None,
    }


def _topics(topics: Mapping[str, Totals]) -> list[dict[str, object]]:
    return [{"topic": name, **_camel(asdict(totals))} for name, totals in topics.items()]


def _camel(sums: dict[str, int]) -> dict[str, int]:
    def named(name: str) -> str:
        first, *others = name.split("_")
        return first + "".join(map(str.capitalize, others))

    return {named(name): value for name, value in sums.items()}


def show_plan(topics: Mapping[str, Totals], *, as_json: bool) -> None:
    """Print what would be checked."""
    planned = ("partitions", "segments", "logBytes")
    if as_json:
        rows = [
            {"topic": each["topic"], **{name: each[name] for name in planned}}
            for each in _topics(topics)
        ]
        print_json({"topics": rows})
        return
    cells = [
        (name, number(each.partitions), number(each.segments), size(each.log_bytes))
        for name, each in topics.items()
    ]
    show_table("would be verified", _HEADER[:4], cells)
