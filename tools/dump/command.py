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
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from odradek.config.java_text import split_list
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.filenames import FileKind
from odradek.storage.files import Files
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.tools.broken_pipe import handle_broken_pipe

from .buffered_output import BufferedOutput
from .decoders import (
    OFFSETS,
    SHARE_STATE,
    TRANSACTIONS,
    BytesDecoder,
    RecordDecoder,
    UnknownDecoderError,
    bytes_decoder,
    metadata_decoder,
    plain_decoder,
    text_or_base64,
)
from .findings import Findings
from .index_text import IndexOptions, dump_index, dump_time_index
from .java_text import JavaFile
from .lines_json import dump_as_json, problem_line
from .log_text import LogOptions, dump_log
from .producer_state_text import dump_producers, dump_transactions

__all__ = ["DumpOptions", "UnknownDecoderError", "run"]

EXIT_OK = 0
EXIT_FAILED = 1
DEFAULT_DECODER = "org.apache.kafka.tools.api.StringDecoder"

# Errors in a file that end the dump.
FAILURES = (UnreadableError, CorruptRecordError, OSError, EOFError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """The options, named as on the command line."""

    files: str
    print_data_log: bool
    deep_iteration: bool
    index_sanity_check: bool
    verify_index_only: bool
    max_message_size: int
    max_bytes: int
    skip_record_metadata: bool
    offsets_decoder: bool
    transaction_log_decoder: bool
    cluster_metadata_decoder: bool
    share_group_state_decoder: bool
    key_decoder_class: str | None
    value_decoder_class: str | None
    json: bool

    @property
    def shows_contents(self) -> bool:
        """Whether to print keys and values. Naming a decoder implies it."""
        return self.print_data_log or any(
            (
                self.offsets_decoder,
                self.transaction_log_decoder,
                self.cluster_metadata_decoder,
                self.share_group_state_decoder,
                self.key_decoder_class is not None,
                self.value_decoder_class is not None,
            )
        )

    def decoder(self) -> RecordDecoder:
        """The first decoder that the options name. Raises UnknownDecoderError."""
        log_decoders = (
            (self.offsets_decoder, OFFSETS),
            (self.transaction_log_decoder, TRANSACTIONS),
            (self.cluster_metadata_decoder, metadata_decoder),
            (self.share_group_state_decoder, SHARE_STATE),
        )
        for is_chosen, decoder in log_decoders:
            if is_chosen:
                return decoder
        return plain_decoder(
            self._bytes_decoder(self.key_decoder_class),
            self._bytes_decoder(self.value_decoder_class),
        )

    def _bytes_decoder(self, class_name: str | None) -> BytesDecoder:
        if class_name is None and self.json:
            return text_or_base64
        return bytes_decoder(class_name or DEFAULT_DECODER)

    def log_options(self) -> LogOptions:
        """The options for logs. Raises UnknownDecoderError."""
        return LogOptions(
            deep=self.deep_iteration or self.shows_contents,
            contents=self.shows_contents,
            metadata=not self.skip_record_metadata,
            max_bytes=self.max_bytes,
            decode=self.decoder(),
        )

    def index_options(self) -> IndexOptions:
        """The options for indexes."""
        return IndexOptions(self.index_sanity_check, self.verify_index_only, self.max_message_size)


class Streams(NamedTuple):
    """Where output and error messages go."""

    write: Callable[[str], object]
    write_error: Callable[[str], object]


def run(options: DumpOptions) -> int:
    """Print the files; returns the exit code. Raises UnknownDecoderError."""
    # Always UTF-8, as Java's output, whatever the locale says. "replace": a text that cannot be
    # encoded must not end the dump.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # these are TextIOWrappers
    out = BufferedOutput(sys.stdout)
    try:
        code = _dump(options, Streams(out.write, sys.stderr.write))
        out.flush()
    except BrokenPipeError:
        return handle_broken_pipe()
    return code


def _dump(options: DumpOptions, streams: Streams) -> int:
    files = Files()
    log_options, index_options = options.log_options(), options.index_options()
    findings = Findings()
    for given in split_list(options.files):
        file = JavaFile(given)
        try:
            if options.json:
                dump_as_json(files, file, log_options, index_options, streams.write)
            else:
                streams.write(f"Dumping {file.text}\n")
                _dump_file(files, file, log_options, index_options, findings, streams)
        except BrokenPipeError:
            raise  # the reader of our output has ended; the file is not the cause
        except FAILURES as error:
            if options.json:
                streams.write(problem_line(file, str(error)))
            streams.write_error(f"odradek dump-log: {file.text}: {error}\n")
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
