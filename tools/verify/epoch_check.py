"""Checks that a log's leader-epoch-checkpoint agrees with the epochs in its batches."""

from bisect import bisect_right
from pathlib import Path

from odradek.storage.checkpoints import CheckpointError, read_epochs
from odradek.storage.files import Files
from odradek.storage.inspect.raw_batch import RawBatch

from .findings import Findings, Kind, Tally
from .unsynced_files import report_damage

_REBUILT = "it is rebuilt from the batches"


class EpochCheck:
    """The leader-epoch-checkpoint of one log. `add` must be called for each batch of the log.

    `end_offset`: the end of the batches whose epochs the file must have. The next start finds the
    later ones in the batches.
    """

    def __init__(
        self, files: Files, path: Path, log_start_offset: int, end_offset: int, findings: Findings
    ) -> None:
        self._path = path
        self._end_offset = end_offset
        self._findings = findings
        self._log_start_offset = log_start_offset
        self._wrong = Tally()
        self._has_epochs = False  # whether any batch names an epoch
        self._epochs: list[tuple[int, int]] | None = None
        try:
            self._epochs = read_epochs(files, path)
        except CheckpointError as error:
            report_damage(files, error, findings, _REBUILT, Kind.EPOCH)
            return
        if any(
            later[0] <= earlier[0] or later[1] < earlier[1]
            for earlier, later in zip(self._epochs, self._epochs[1:], strict=False)
        ):
            what = "epochs or offsets do not ascend"
            findings.problem(path, what, "later entries replace earlier ones", Kind.EPOCH)
            self._epochs = None

    def add(self, batch: RawBatch) -> None:
        """Compare the next batch of the log with the checkpoint."""
        if batch.is_message or batch.header.partition_leader_epoch < 0:
            return
        if batch.offset >= self._end_offset:
            return
        self._has_epochs = True
        if not self._epochs or batch.last_offset < self._log_start_offset:
            return
        epoch, offset = batch.header.partition_leader_epoch, batch.offset
        offset = max(offset, self._log_start_offset)
        index = bisect_right(self._epochs, offset, key=lambda entry: entry[1]) - 1
        known = self._epochs[index][0] if index >= 0 else None
        if known != epoch:
            shown = "none" if known is None else str(known)
            what = f"the batch is of epoch {epoch}, the file says {shown}"
            self._wrong.add(what, offset=offset)

    def end(self, log_end_offset: int) -> None:
        """Report what was found, after the last batch."""
        self._findings.problem(self._path, self._wrong, "it is used as it is", Kind.EPOCH)
        if self._epochs == [] and self._has_epochs:
            what = "no epochs, though batches have some"
            self._findings.note(self._path, what, _REBUILT, Kind.EPOCH)
        later = [entry for entry in self._epochs or () if entry[1] > log_end_offset]
        if later:
            what = f"epoch {later[0][0]} begins at {later[0][1]}, after the log end "
            at_start = "entries after the log end are dropped"
            self._findings.note(self._path, f"{what}{log_end_offset}", at_start, Kind.EPOCH)
