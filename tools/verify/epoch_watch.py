"""Whether the leader epochs in a log's checkpoint are those in its batches."""

from bisect import bisect_right
from pathlib import Path

from odradek.storage.checkpoints import CheckpointError, read_epochs
from odradek.storage.files import Files
from odradek.storage.raw_scan import RawBatch

from .findings import Findings, Tally

_MADE_ANEW = "it is made anew from the batches"


class EpochWatch:
    """leader-epoch-checkpoint of one log; sees all its batches."""

    def __init__(self, files: Files, path: Path, log_start_offset: int, findings: Findings) -> None:
        self._path = path
        self._findings = findings
        self._log_start_offset = log_start_offset
        self._wrong = Tally()
        self._seen = False
        self._epochs: list[tuple[int, int]] | None = None
        try:
            self._epochs = read_epochs(files, path)
        except (CheckpointError, OSError) as error:
            findings.problem(path, str(error), _MADE_ANEW)
            return
        if any(
            later[0] <= earlier[0] or later[1] < earlier[1]
            for earlier, later in zip(self._epochs, self._epochs[1:], strict=False)
        ):
            findings.problem(path, "epochs or offsets do not ascend", "the later entries count")
            self._epochs = None

    def see(self, batch: RawBatch) -> None:
        """The next batch of the log."""
        if batch.is_message or batch.header.partition_leader_epoch < 0:
            return
        self._seen = True
        if not self._epochs or batch.last_offset < self._log_start_offset:
            return
        epoch, offset = batch.header.partition_leader_epoch, batch.offset
        offset = max(offset, self._log_start_offset)
        at = bisect_right(self._epochs, offset, key=lambda entry: entry[1]) - 1
        known = self._epochs[at][0] if at >= 0 else None
        if known != epoch:
            shown = "none" if known is None else str(known)
            self._wrong.add(
                f"offset {offset}: its batch is of epoch {epoch}, the file says {shown}"
            )

    def end(self, log_end_offset: int) -> None:
        """All batches went by."""
        if self._wrong.count:
            self._findings.problem(self._path, str(self._wrong), "it is believed as it is")
        if self._epochs == [] and self._seen:
            self._findings.note(self._path, "no epochs, though batches have some", _MADE_ANEW)
        behind = [entry for entry in self._epochs or () if entry[1] > log_end_offset]
        if behind:
            what = f"epoch {behind[0][0]} begins at {behind[0][1]}, behind the end {log_end_offset}"
            self._findings.note(self._path, what, "entries behind the end are dropped")
