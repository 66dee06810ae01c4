"""The event loop of a process: uvloop's where it is installed, otherwise asyncio's own.

uvloop has no wheels for Windows. Python chooses there a loop that accepts and receives by itself;
the broker watches its sockets, so it needs the one with `select`.
"""

import asyncio
from collections.abc import Callable

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop
except ImportError:
    new_event_loop = asyncio.SelectorEventLoop
