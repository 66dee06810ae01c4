"""The process whose forks are the brokers of tests (template.py).

A fork serves calls on its standard input and output (call_server.py). It ends when its standard
input ends, so it does not outlive the process that has started it.
"""

import gc


def main() -> None:
    """Fork as the process at the other end of standard input, a socket, orders."""
    # What is imported stays until the process ends. Collecting it while it is made would take a
    # tenth of the start.
    gc.disable()
    import encodings.idna  # noqa: F401 # the first getaddrinfo would import it
    import os
    import socket

    from odradek.broker.turns.full_collections import spare_what_stays

    from .call_server import serve_calls
    from .template import Template

    spare_what_stays()
    Template(socket.socket(fileno=os.dup(0)), serve_calls).run()
