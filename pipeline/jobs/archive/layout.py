"""Every name in an archive, made and parsed. On disk: never rename."""

import datetime
import re
from pathlib import Path
from typing import NamedTuple

OWN_DIRECTORY = "_odradek"
DEAD_LETTERS = "_dead_letters"
STAGED_SUFFIX = ".staged"  # no `.parquet`: some take all that ends so, wherever it lies
_NO_DATE = "__HIVE_DEFAULT_PARTITION__"  # what readers take for null
_ENTRY = re.compile(r"(\d{20})\.json")
_DAYS_FROM_YEAR_1 = -719_162  # to 1970-01-01
_DAYS_TO_YEAR_9999 = 2_932_896


class ArchiveLayout(NamedTuple):
    """The places in the archive at `root`."""

    root: Path

    @property
    def own(self) -> Path:
        return self.root / OWN_DIRECTORY

    @property
    def lock(self) -> Path:
        return self.own / "lock"

    @property
    def manifest(self) -> Path:
        return self.own / "manifest"

    @property
    def staging(self) -> Path:
        return self.own / "staging"

    def run(self, run_id: str) -> Path:
        """Where a run puts what it has not committed."""
        return self.staging / run_id

    def replay(self, job_id: str) -> Path:
        """Where a replay notes how far it has got."""
        return self.own / "replays" / job_id


def entry_name(number: int) -> str:
    """The file of the manifest's entry with that number."""
    return f"{number:020}.json"


def entry_number(name: str) -> int | None:
    """None for what is no entry's name."""
    match = _ENTRY.fullmatch(name)
    return int(match[1]) if match else None


def date_of(day: int) -> str | None:
    """The date so many days from 1970-01-01; None for years that no reader understands."""
    if not _DAYS_FROM_YEAR_1 <= day <= _DAYS_TO_YEAR_9999:
        return None
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()


def date_directory(topic: str, date: str | None, *, dead_letters: bool = False) -> str:
    """Relative to the archive. The characters of a topic's name need no escaping."""
    place = f"topic={topic}/date={date or _NO_DATE}"
    return f"{DEAD_LETTERS}/{place}" if dead_letters else place


def data_file_name(partition: int, first_offset: int, last_offset: int, number: int) -> str:
    """Sorts by offset within a partition; `number` is the entry's, so no name is given twice.

    Offsets alone do not do: a topic that was deleted and made anew begins again at 0.
    """
    return f"{partition}-{first_offset:020}-{last_offset:020}-{number}.parquet"
