"""Which of librdkafka's clients run in this process, to see those that were not freed."""

from contextlib import suppress
from pathlib import Path


def running_clients() -> set[str]:
    """The ids of their main threads: each client has one. The other threads come and go."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            if (thread / "comm").read_text().strip() == "rdk:main":
                found.add(thread.name)
    return found
