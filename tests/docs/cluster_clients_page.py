"""The page of clients whose nodes fail."""

from tests.conformance.cluster.client_cells import (
    LIBRARY_NAMES,
    NOT_COMPARED,
    SEEN,
    TITLES,
    Cell,
)
from tests.docs.markdown import table

INTRODUCTION = """\
# Clients whose nodes fail

What clients live through when nodes of [a cluster](../guides/cluster.md) fail. The same scripts run
against three nodes of Apache Kafka 4.4 and against three of odradek
(`tests/conformance/test_cluster_clients.py`, in `make long`). *equal*: with both, each acknowledged
record is there once, consumers get every committed record, and the application sees the same
errors, which are named here.
"""


def cluster_clients_page() -> str:
    """A table of scripts and libraries, and notes where they are not compared."""
    notes = list(dict.fromkeys(NOT_COMPARED.values()))
    rows = [
        (title, *(_cell((script, library), notes) for library in LIBRARY_NAMES))
        for script, title in TITLES.items()
    ]
    numbered = [f"{number}. {note}." for number, note in enumerate(notes, 1)]
    return "\n".join(
        [
            INTRODUCTION,
            table(("", *LIBRARY_NAMES.values()), rows),
            "Not compared, because:\n",
            *numbered,
            "",
        ]
    )


def _cell(cell: Cell, notes: list[str]) -> str:
    if cell in NOT_COMPARED:
        return f"({notes.index(NOT_COMPARED[cell]) + 1})"
    seen = SEEN.get(cell, ())
    return "equal: " + ", ".join(f"`{name}`" for name in seen) if seen else "equal"
