"""Runs `odradek dump-log`: opens each file, prints it, and chooses the exit code.

Exit codes:
0  all files were printed, even if their content is damaged
1  a file cannot be opened, or not be read to its end; a line on stderr says why; as with Kafka's
   tool, everything before that point has been printed
2  wrong usage

A file of an unknown kind is skipped with a line on stderr.

Kafka: DumpLogSegments.main.
"""

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from odradek.config.java_text import split_list
from odradek.coordinator.inspect.internal_records import (
    OFFSETS,
    SHARE_STATE,
    TRANSACTIONS,
    RecordDecoder,
    metadata_decoder,
)
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.filenames import FileKind
from odradek.storage.files import Files
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.tools.standard_streams import reader_may_end

from .buffered_output import BufferedOutput
from .decoders import BytesDecoder, bytes_decoder, plain_decoder, text_or_base64
from .findings import Findings
from .index_text import IndexOptions, dump_index, dump_time_index
from .java_text import JavaFile
from .lines_json import dump_as_json, problem_line
from .log_text import LogOptions, dump_log
from .producer_state_text import dump_producers, dump_transactions

EXIT_OK = 0
EXIT_FAILED = 1
DEFAULT_DECODER = "org.apache.kafka.tools.api.StringDecoder"

# Errors in a file that end the dump.
FAILURES = (UnreadableError, CorruptRecordError, OSError, EOFError, ValueError)


_LOG_DECODERS = {
    "offsets": OFFSETS,
    "transactions": TRANSACTIONS,
    "metadata": metadata_decoder,
    "share state": SHARE_STATE,
}


def record_decoder(
    logs: Sequence[str], key_class: str | None, value_class: str | None, *, as_json: bool
) -> RecordDecoder:
    """Return the decoder of the first of `logs`; without one, a decoder of keys and values.

    Raises UnknownDecoderError.
    """
    if logs:
        return _LOG_DECODERS[logs[0]]

    def decoder(class_name: str | None) -> BytesDecoder:
        if class_name is None and as_json:
            return text_or_base64
        return bytes_decoder(class_name or DEFAULT_DECODER)

    return plain_decoder(decoder(key_class), decoder(value_class))


class Streams(NamedTuple):
    """Where output and error messages go."""

    write: Callable[[str], object]
    write_error: Callable[[str], object]


def run(files: str, log_options: LogOptions, index_options: IndexOptions, *, as_json: bool) -> int:
    """Print the files, which are separated by commas; returns the exit code."""
    # Always UTF-8, as Java's output, whatever the locale says. "replace": a text that cannot be
    # encoded must not end the dump.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # these are TextIOWrappers
    out = BufferedOutput(sys.stdout)
    code = _dump(
        files, log_options, index_options, Streams(out.write, sys.stderr.write), as_json=as_json
    )
    with reader_may_end():
        out.flush()
    return code


def _dump(
    given_files: str,
    log_options: LogOptions,
    index_options: IndexOptions,
    streams: Streams,
    *,
    as_json: bool,
) -> int:
    files = Files()
    findings = Findings()
    for given in split_list(given_files):
        file = JavaFile(given)
        try:
            if as_json:
                dump_as_json(files, file, log_options, index_options, streams.write)
            else:
                streams.write(f"Dumping {file.text}\n")
                _dump_file(files, file, log_options, index_options, findings, streams)
        except FAILURES as error:
            streams.write_error(f"odradek dump-log: {file.text}: {error}\n")
            if as_json:
                streams.write(problem_line(file, str(error)))
            return EXIT_FAILED
    findings.write(streams.write_error)
    return EXIT_OK


def _dump_file(
    files: Files,
    file: JavaFile,
    log_options: LogOptions,
    index_options: IndexOptions,
    findings: Findings,
    streams: Streams,
) -> None:
    match file.suffix:
        case FileKind.LOG | ".checkpoint":
            dump_log(files, file, log_options, findings, streams.write)
        case FileKind.OFFSET_INDEX:
            dump_index(files, file, index_options, findings, streams.write)
        case FileKind.TIME_INDEX:
            dump_time_index(files, file, index_options, findings, streams.write)
        case FileKind.PRODUCER_SNAPSHOT:
            dump_producers(files, file, streams.write, streams.write_error)
        case FileKind.TXN_INDEX:
            dump_transactions(files, file, streams.write)
        case _:
            streams.write_error(f"Ignoring unknown file {file.text}\n")
