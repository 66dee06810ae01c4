"""The entry point of the command `odradek`.

`serve` runs without importing typer and rich: the broker must start quickly and needs neither.
"""

import gc
import sys


def main() -> None:
    """Run the command in sys.argv and exit with its code."""
    if sys.argv[1:2] == ["serve"]:
        gc.disable()  # see serve.py
        from .serve import main as serve

        sys.exit(serve(sys.argv[2:]))
    from .app import app

    app()
