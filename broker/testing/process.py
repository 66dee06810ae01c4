"""The process whose forks are the brokers of tests (template.py).

A fork serves calls on its standard input and output (call_server.py). It ends when its standard
input ends, so it does not outlive the process that has started it.
"""

import gc
import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress


def main() -> None:
    """Make a fork whenever the test's process asks for one. Standard input is a socket to it."""
    # What is imported stays until the process ends. Collecting it while it is made would take a
    # tenth of the start. `spare_what_stays` turns the collector on again.
    gc.disable()
    import os
    import socket

    from odradek.broker.turns.full_collections import spare_what_stays
    from odradek.storage.process_limits import raise_descriptor_limit

    from .call_server import CallServer
    from .template import Template

    raise_descriptor_limit()
    server = CallServer()
    spare_what_stays()
    # A duplicate, because descriptor 0 is that of sys.stdin, and a fork replaces it.
    Template(socket.socket(fileno=os.dup(0)), import_modules, server.serve).run()


def import_modules(names: Sequence[str]) -> None:
    """Import modules that only some brokers need, if they are not imported yet."""
    missing = [name for name in names if name not in sys.modules]
    if not missing:
        return
    from odradek.broker.turns.full_collections import spare_what_stays

    gc.disable()
    for name in missing:
        with suppress(Exception):  # the broker that needs it raises the error again, and reports it
            importlib.import_module(name)
    spare_what_stays()
