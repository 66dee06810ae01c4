"""The process of a test's broker.

It serves calls on its standard input and output (call_server.py). It ends when standard input ends,
so it does not outlive the process that has started it.
"""

import gc


def main() -> None:
    """Serve calls until standard input ends."""
    # What is imported stays until the process ends. Collecting it while it is made would take a
    # tenth of the start.
    gc.disable()
    from odradek.broker.turns.full_collections import spare_what_stays

    from .call_server import serve_calls

    spare_what_stays()
    serve_calls()
