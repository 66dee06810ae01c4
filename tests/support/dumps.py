"""Dumps of the same files by Apache Kafka's tool and by ours, side by side."""

import base64
import re
from itertools import zip_longest
from typing import NamedTuple

from typer.testing import CliRunner

from odradek.tools.app import app
from tests.support.java_program import JavaProgram


class Dump(NamedTuple):
    """What a run of the tool ended with, and what it wrote."""

    code: int
    out: str
    err: str


class KafkasDumps(JavaProgram):
    """Kafka's DumpLogSegments, one process for many runs."""

    def __init__(self) -> None:
        self.last_death = ""
        super().__init__("DumpLog.java", options=("-Xmx512m",))

    def dump(self, *arguments: str) -> Dump:
        """One run. `last_death` is the exception that ended it, if one did."""
        code, *parts = self.ask("\t".join(arguments)).split(" ")
        out, err, self.last_death = (
            base64.b64decode(part).decode("utf-8", "replace") for part in parts
        )
        return Dump(int(code), out, err)


def our_dump(*arguments: str) -> Dump:
    """The same by `odradek dump-log`."""
    result = CliRunner().invoke(app, ["dump-log", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Dump(result.exit_code, result.stdout, result.stderr)


def difference(kafkas: Dump, ours: Dump) -> str | None:
    """Where they first differ: in what was printed, or in the exit code; but for these.

    Why a dump died is told by Java with a stack trace, by odradek with a line. Why a record of an
    internal log cannot be decoded is told in other words; and bytes that no writer writes (a null
    that is -7 long, a tagged field of another size or of a later version) are taken by the one
    reader and refused by the other. So it is with damaged compressed streams: Java's gzip knows no
    header flags that are not defined, its LZ4 ends where a block has no size.
    """
    if _BROKEN_STREAM.search(ours.err) and kafkas.out.startswith(ours.out):
        return None
    printed = (kafkas.out.split("\n"), ours.out.split("\n"))
    for theirs, mine in zip_longest(*printed, fillvalue=""):
        if theirs != mine and not (_is_undecodable(theirs, mine) or _is_undecodable(mine, theirs)):
            return f"Kafka: {theirs}\nodradek: {mine}"
    if kafkas.code != ours.code or (kafkas.code == 0 and kafkas.err != ours.err):
        return f"Kafka: {kafkas.code} {kafkas.err}\nodradek: {ours.code} {ours.err}"
    return None


_BROKEN_STREAM = re.compile(r"not (gzip|snappy|lz4|zstd) data")
_UNDECODABLE = re.compile(r"(.* (?:key|payload): )Error at .*(?: due to: |Failed to deserialize)")


def _is_undecodable(other: str, line: str) -> bool:
    found = _UNDECODABLE.match(line)
    return found is not None and other.startswith(found[1])
