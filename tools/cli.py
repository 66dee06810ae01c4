"""The command `odradek`.

`serve` is taken before typer and rich are imported: a broker must start quickly and needs neither.
"""

import sys


def main() -> None:
    """The entry point of the command."""
    if sys.argv[1:2] == ["serve"]:
        from .serve import main as serve

        sys.exit(serve(sys.argv[2:]))
    from .app import app

    app()
