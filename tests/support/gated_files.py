"""A disk on which the fsyncs of one directory wait."""

import threading
from pathlib import Path

from odradek.storage.files import OpenFile
from odradek.storage.log import PartitionLog
from tests.support.faulty_files import FaultyFiles


class GatedFiles(FaultyFiles):
    """The fsyncs of one directory wait until the gate is opened; those of its logs are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.gated = Path("/nowhere")
        self.begun = 0

    def fsync(self, file: OpenFile) -> None:
        if file.path.is_relative_to(self.gated) and file.path.suffix == ".log":
            self.begun += 1
            assert self.gate.wait(30)
        super().fsync(file)

    def close_gate(self, log: PartitionLog) -> None:
        self.gated = log.directory
        self.begun = 0
        self.gate.clear()
