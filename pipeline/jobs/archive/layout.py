"""Makes and parses the names of all files in an archive. On disk: never rename."""

import datetime
import re
from pathlib import Path
from typing import NamedTuple

INTERNAL_DIRECTORY = "_odradek"
DEAD_LETTERS = "_dead_letters"
STAGED_SUFFIX = ".staged"  # not `.parquet`: some readers read each such file, in any directory
_NO_DATE = "__HIVE_DEFAULT_PARTITION__"  # the name for null in Hive's partitioning
_ENTRY = re.compile(r"(\d{20})\.json")
_DAYS_FROM_YEAR_1 = -719_162  # to 1970-01-01
_DAYS_TO_YEAR_9999 = 2_932_896


class ArchiveLayout(NamedTuple):
    """The paths in the archive at `root`."""

    root: Path

    @property
    def internal(self) -> Path:
        return self.root / INTERNAL_DIRECTORY

    @property
    def lock(self) -> Path:
        return self.internal / "lock"

    @property
    def manifest(self) -> Path:
        return self.internal / "manifest"

    @property
    def staging(self) -> Path:
        return self.internal / "staging"

    def run(self, run_id: str) -> Path:
        """The staging directory of a run."""
        return self.staging / run_id

    def replay(self, job_id: str) -> Path:
        """The directory that holds a replay's progress."""
        return self.internal / "replays" / job_id


def entry_name(number: int) -> str:
    """Return the file name of the manifest's entry with that number."""
    return f"{number:020}.json"


def entry_number(name: str) -> int | None:
    """Return the number of an entry, or None if it is not the name of an entry."""
    match = _ENTRY.fullmatch(name)
    return int(match[1]) if match else None


def date_of(day: int) -> str | None:
    """Return the date `day` days after 1970-01-01; None outside the years 1 to 9999."""
    if not _DAYS_FROM_YEAR_1 <= day <= _DAYS_TO_YEAR_9999:
        return None
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()


def date_directory(topic: str, date: str | None, *, dead_letters: bool = False) -> str:
    """Return the path relative to the archive. Characters of topic names need no escaping."""
    place = f"topic={topic}/date={date or _NO_DATE}"
    return f"{DEAD_LETTERS}/{place}" if dead_letters else place


def data_file_name(partition: int, first_offset: int, last_offset: int, number: int) -> str:
    """Return a name that sorts by offset within a partition; `number` is that of the entry.

    Offsets alone are not unique: a topic that was deleted and created again begins at 0.
    """
    return f"{partition}-{first_offset:020}-{last_offset:020}-{number}.parquet"
