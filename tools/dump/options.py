"""The options of `odradek dump-log`. The code that does the work is imported on demand."""

from typing import Annotated

import typer

_MAX_MESSAGE_BYTES = 5 << 20
_INT_MAX = (1 << 31) - 1

_CLASS_HELP = "Kafka's decoder for the {}: org.apache.kafka.tools.api.StringDecoder (the default), \
IntegerDecoder or LongDecoder."


def dump_log(  # noqa: PLR0913 - one parameter per option of Kafka's tool
    *,
    files: Annotated[
        str,
        typer.Option(
            "--files",
            metavar="FILE,FILE...",
            help="The files: .log, .index, .timeindex, .txnindex, .snapshot, .checkpoint.",
        ),
    ],
    print_data_log: Annotated[
        bool, typer.Option("--print-data-log", help="Print keys and values too.")
    ] = False,
    deep_iteration: Annotated[
        bool, typer.Option("--deep-iteration", help="Print the records of each batch too.")
    ] = False,
    index_sanity_check: Annotated[
        bool,
        typer.Option(
            "--index-sanity-check", help="Only run the check that a broker runs when it starts."
        ),
    ] = False,
    verify_index_only: Annotated[
        bool,
        typer.Option("--verify-index-only", help="Only compare an index with its log."),
    ] = False,
    max_message_size: Annotated[
        int,
        typer.Option("--max-message-size", help="How far to look for the batch of an index entry."),
    ] = _MAX_MESSAGE_BYTES,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", help="How much of each log to read.", show_default=False)
    ] = _INT_MAX,
    skip_record_metadata: Annotated[
        bool,
        typer.Option(
            "--skip-record-metadata", help="Print keys and values only, and no control records."
        ),
    ] = False,
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="The log is __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="The log is __transaction_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool,
        typer.Option(
            "--cluster-metadata-decoder", help="The log, or snapshot, is __cluster_metadata."
        ),
    ] = False,
    share_group_state_decoder: Annotated[
        bool, typer.Option("--share-group-state-decoder", help="The log is __share_group_state.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool,
        typer.Option(
            "--remote-log-metadata-decoder", help="Refused: odradek has no tiered storage."
        ),
    ] = False,
    key_decoder_class: Annotated[
        str | None,
        typer.Option("--key-decoder-class", metavar="CLASS", help=_CLASS_HELP.format("keys")),
    ] = None,
    value_decoder_class: Annotated[
        str | None,
        typer.Option("--value-decoder-class", metavar="CLASS", help=_CLASS_HELP.format("values")),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object per batch, record or entry.")
    ] = False,
) -> None:
    """Print the content of a log's files, as Kafka's kafka-dump-log does.

    The files may be damaged, in use, or of any format since Kafka 0.8. Nothing is changed. The
    exit code is 1 if a file cannot be read to its end.
    """
    if remote_log_metadata_decoder:
        raise typer.BadParameter(
            "the metadata log of tiered storage cannot be decoded: odradek has no tiered storage",
            param_hint="--remote-log-metadata-decoder",
        )
    from .command import record_decoder, run
    from .decoders import UnknownDecoderError
    from .index_text import IndexOptions
    from .log_text import LogOptions

    log_decoders = {
        "offsets": offsets_decoder,
        "transactions": transaction_log_decoder,
        "metadata": cluster_metadata_decoder,
        "share state": share_group_state_decoder,
    }
    logs = [name for name, is_chosen in log_decoders.items() if is_chosen]
    names_decoder = bool(logs) or key_decoder_class is not None or value_decoder_class is not None
    contents = print_data_log or names_decoder
    try:
        decode = record_decoder(logs, key_decoder_class, value_decoder_class, as_json=json)
    except UnknownDecoderError as error:
        raise typer.BadParameter(str(error)) from None
    log_options = LogOptions(
        deep=deep_iteration or contents,
        contents=contents,
        metadata=not skip_record_metadata,
        max_bytes=max_bytes,
        decode=decode,
    )
    index_options = IndexOptions(index_sanity_check, verify_index_only, max_message_size)
    raise typer.Exit(run(files, log_options, index_options, as_json=json))
