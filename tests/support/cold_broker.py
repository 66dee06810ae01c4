"""A broker whose partitions are never sure to be in memory, and whose disk is slow.

Half of the reads of some topics' files are made by a disk thread first, which takes its time. If
`damaged` is given, some of the reads that follow find a batch header that makes no sense, as from
a disk that returns other bytes than it was given.

The process is this module: `python -m tests.support.cold_broker FILE PREFIX SEED [damaged]`.
"""

import functools
import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import get_ident

from odradek.broker.lifecycle import run
from odradek.broker.lifecycle.running import start_broker
from odradek.storage.files import Files, OpenFile
from odradek.tools import serve
from tests.support.broker_process import BrokerProcess

COLD = 0.5
SLOWEST_S = 0.01
DAMAGED = 0.02
LENGTH = slice(8, 12)  # of a batch, in its header


class ColdFiles(Files):
    """Is made on the thread of the event loop. `prefix`: of the topics of which reads are cold."""

    def __init__(self, prefix: str, chance: random.Random, damaged: float) -> None:
        self._prefix = prefix
        self._chance = chance
        self._damaged = damaged
        self._loop_thread = get_ident()

    def _is_cold(self, file: OpenFile, chance: float = COLD) -> bool:
        is_theirs = file.path.parent.name.startswith(self._prefix)
        return is_theirs and self._chance.random() < chance

    def pread_cached(self, file: OpenFile, size: int, position: int) -> bytes | None:
        return None if self._is_cold(file) else super().pread_cached(file, size, position)

    def is_cached(self, file: OpenFile, size: int, position: int) -> bool:
        return not self._is_cold(file) and super().is_cached(file, size, position)

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        is_on_loop = get_ident() == self._loop_thread
        if not is_on_loop and self._is_cold(file):
            time.sleep(self._chance.uniform(0, SLOWEST_S))
        data = super().pread(file, size, position)
        is_of_request = is_on_loop and self.nonblocking is not None
        if is_of_request and file.path.suffix == ".log" and self._is_cold(file, self._damaged):
            return data[: LENGTH.start] + bytes(4) + data[LENGTH.stop :]
        return data

    def read_ahead(self, file: OpenFile, size: int, position: int) -> None:
        time.sleep(self._chance.uniform(0, SLOWEST_S))
        super().read_ahead(file, size, position)


class ColdBroker(BrokerProcess):
    """Such a broker as a process. Each of its lives is cold at other reads."""

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str],
        *,
        prefix: str,
        seed: int,
        is_damaged: bool,
    ) -> None:
        super().__init__(directory, overrides)
        self._prefix = prefix
        self._seed = seed
        self.is_damaged = is_damaged

    def _command(self) -> list[str]:
        file = super()._command()[-1]
        self._seed += 1
        module = ["-m", "tests.support.cold_broker"]
        words = [file, self._prefix, str(self._seed), *["damaged"] * self.is_damaged]
        return [sys.executable, *module, *words]


def main(file: str, prefix: str, seed: str, *damaged: str) -> int:
    files = ColdFiles(prefix, random.Random(int(seed)), DAMAGED if damaged else 0.0)
    start = functools.partial(start_broker, files=files)
    run.start_broker = start  # type: ignore[attr-defined] # what `serve` starts
    return serve.main([file])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
