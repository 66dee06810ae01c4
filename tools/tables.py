"""Prints a job's result: as a table on a terminal, else as aligned lines."""

import sys
from collections.abc import Sequence

import typer

from .standard_streams import json_text


def show_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    total: Sequence[str] = (),
    *,
    texts: int = 1,
) -> None:
    """Print a table. The first `texts` columns are text, the others are numbers."""
    if sys.stdout.isatty():
        _show_on_terminal(title, header, rows, total, texts)
        return
    lines = [header, *rows, *([total] if total else [])]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    typer.echo(title)
    for line in lines:
        sized = list(zip(line, widths, strict=True))
        cells = [cell.ljust(width) for cell, width in sized[:texts]]
        cells += [cell.rjust(width) for cell, width in sized[texts:]]
        typer.echo("  ".join(cells).rstrip())


def _show_on_terminal(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    total: Sequence[str],
    texts: int,
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_footer=bool(total))
    for index, name in enumerate(header):
        footer = total[index] if total else ""
        table.add_column(name, footer=footer, justify="left" if index < texts else "right")
    for row in rows:
        table.add_row(*row)
    Console(markup=False, emoji=False).print(table)  # a group may be called [b] or :b:


def show_rows(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    as_json: bool,
    texts: int = 1,
) -> None:
    """Print a table, or a list of JSON objects, whose fields have the names of the columns.

    None is `-` in the table.
    """
    if as_json:
        names = [name.replace(" ", "_") for name in header]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
        show_table(title, header, cells, texts=texts)


def print_json(value: object) -> None:
    """Print a JSON value with indents."""
    typer.echo(json_text(value, indent=2))


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 topic`, `2 topics`. `many` is the plural if it is not `one` with an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def number(value: int) -> str:
    """`1,234,567`; an empty text for 0."""
    return f"{value:,}" if value else ""


def size(value: int) -> str:
    """Bytes as `1.2 GiB`."""
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def print_each(label: str, lines: Sequence[str], limit: int = 20) -> None:
    """Print `label: line` to stderr for the first `limit` lines, and how many more there are."""
    for line in lines[:limit]:
        typer.secho(f"{label}: {line}", fg="yellow", err=True)
    if len(lines) > limit:
        typer.secho(f"{label}: … and {len(lines) - limit} more", fg="yellow", err=True)
