"""The entry point of the command `odradek`.

`serve` runs without importing typer and rich: the broker must start quickly and needs neither.
"""

import gc
import sys
from collections.abc import Callable

from .standard_streams import EXIT_FAILED, OutputError, open_closed_streams, watch_streams

EXIT_INTERRUPTED = 130


def main(explain: Callable[[str], str] = str) -> None:
    """Run the command in sys.argv and exit with its code.

    `explain` adds to the messages of `serve` about its configuration where a setting comes from.
    """
    open_closed_streams()
    if sys.argv[1:2] == ["serve"]:
        gc.disable()  # see serve.py
        try:
            from .serve import main as serve

            code: str | int | None = serve(sys.argv[2:], explain)
        except KeyboardInterrupt:  # while the program is loaded; later, control-C stops the broker
            code = EXIT_INTERRUPTED
        sys.exit(code)
    watch_streams()
    code = 0
    try:
        try:
            from .app import app

            app()
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
    except OutputError as error:
        if str(error):
            sys.stderr.write(f"odradek: {error}\n")
        code = code or error.exit_code
    except OSError as error:
        sys.stderr.write(f"odradek: {error}\n")
        code = EXIT_FAILED
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    sys.exit(code)
