"""Formats findings and totals: as text, as JSON lines, or as a table on a terminal."""

import json
from dataclasses import asdict

from .findings import Finding, Severity, Totals


def finding_line(finding: Finding) -> str:
    """`problem: PATH: what is wrong. At start: what a broker does about it`"""
    line = f"{finding.severity}: {finding.path}: {finding.what}"
    return f"{line}. At start: {finding.at_start}" if finding.at_start else line


def finding_json(finding: Finding) -> str:
    """A finding as one JSON object."""
    fields = {
        "type": finding.severity.value,
        "path": str(finding.path),
        "what": finding.what,
        "atStart": finding.at_start or None,
    }
    return json.dumps(fields, ensure_ascii=False)


def totals_json(totals: Totals) -> str:
    """The last line of `--json`."""
    counted = asdict(totals)
    counted["logBytes"] = counted.pop("log_bytes")
    return json.dumps({"type": "summary", **counted, "sound": totals.problems == 0})


def totals_line(totals: Totals) -> str:
    """The last line of the text output."""
    verdict = "sound" if not totals.problems else _counted(totals.problems, "problem")
    return (
        f"{_counted(totals.partitions, 'log')}, {_counted(totals.segments, 'segment')}, "
        f"{_counted(totals.batches, 'batch', 'batches')}, {totals.log_bytes} bytes: {verdict}, "
        f"{_counted(totals.notes, 'note')}"
    )


def _counted(count: int, singular: str, plural: str | None = None) -> str:
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def show_on_terminal(findings: list[Finding], totals: Totals) -> None:
    """Print a table of the findings, and the totals."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if findings:
        table = Table("", "where", "what", "at start", show_lines=True)
        for finding in findings:
            colour = "red" if finding.severity is Severity.PROBLEM else "yellow"
            shown = [escape(str(each)) for each in finding[1:]]
            table.add_row(f"[{colour}]{finding.severity}[/]", *shown, end_section=False)
        console.print(table)
    colour = "red" if totals.problems else "green"
    console.print(f"[{colour}]{escape(totals_line(totals))}[/]", highlight=False)
