"""Draws the picture of a terminal in the README: `python -m tests.docs.terminal`.

The commands are run with a broker of their own, and what they print is drawn.
"""

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from odradek.broker.testing import Broker
from tests.docs.markdown import ROOT

PICTURE = ROOT / "docs" / "terminal.svg"
COLUMNS = 84
COMMANDS = (
    "odradek topics create orders --partitions 3",
    "printf 'table-7=one coffee\\ntable-2=two teas\\n' | odradek produce orders -K =",
    "odradek consume orders --format '%p %o %k: %s\\n'",
    "odradek groups reset-offsets kitchen --topic orders --to earliest --execute",
    "odradek groups describe kitchen",
)
# Fonts, which would be fetched from another host, and an advertisement.
_DROPPED = re.compile(r"\s*(@font-face \{.*?\}|<!-- .*? -->)", re.DOTALL)


def main() -> None:
    """Run the commands and write the picture."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    with Broker() as broker:
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi(output_of(command, broker.bootstrap_servers)))
    PICTURE.write_text(_DROPPED.sub("", console.export_svg(title="odradek", unique_id="terminal")))


def output_of(command: str, bootstrap: str) -> str:
    """What a shell command prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {
        "PATH": path,
        "ODRADEK_BOOTSTRAP": bootstrap,
        "COLUMNS": str(COLUMNS),
    }
    done = subprocess.run(
        command, shell=True, check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout + done.stderr


if __name__ == "__main__":
    main()
