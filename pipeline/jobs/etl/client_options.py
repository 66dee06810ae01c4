"""Checks the options of a job's sources and its sink before Spark is started.

A job that reads what it writes would never end. It is refused if source and sink have the same
bootstrap servers, or if the source has none (it reads files).
"""

from collections.abc import Iterator
from typing import NamedTuple

from odradek.pipeline.jobs import JobError
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.sink.write_options import WriteOptions, write_options
from odradek.pipeline.source.options import ReadOptions, read_options

from .job_file import EtlJob

_BOOTSTRAP = "bootstrap.servers"


class CheckedOptions(NamedTuple):
    """The options by view (without `format: kafka`, which Spark checks), and the sink's."""

    sources: dict[str, ReadOptions]
    sink: WriteOptions


def check_options(job: EtlJob) -> CheckedOptions:
    """Parse all options. Raises JobError."""
    try:
        sink = write_options(job.sink_options)
    except OptionError as error:
        raise JobError(f"sink.options: {error}") from None
    if sink.topic is not None:
        raise JobError("sink.options: set the topic as sink.topic, not as an option")
    sources: dict[str, ReadOptions] = {}
    for name, source in job.sources.items():
        if source.format == "odradek":
            try:
                sources[name] = read_options(job.source_options(name), streaming=True)
            except OptionError as error:
                raise JobError(f"sources.{name}.options: {error}") from None
            if sources[name].batch_view:
                raise JobError(f"sources.{name}.options: view=batches has no keys and values")
    _check_no_cycle(job, sources, sink)
    return CheckedOptions(sources, sink)


def written_topics(job: EtlJob) -> Iterator[tuple[str, str]]:
    """Yield place in the file and name of each topic that is set in the file."""
    if job.sink.topic is not None:
        yield "sink.topic", job.sink.topic
    for name, source in job.sources.items():
        if source.on_bad_record == "dead-letter" and source.dead_letter_topic is not None:
            yield f"sources.{name}.dead_letter_topic", source.dead_letter_topic


def _check_no_cycle(job: EtlJob, sources: dict[str, ReadOptions], sink: WriteOptions) -> None:
    for place, topic in written_topics(job):
        for name, options in sources.items():
            brokers = options.client.get(_BOOTSTRAP, sink.client[_BOOTSTRAP])
            if brokers == sink.client[_BOOTSTRAP] and options.topics.reads(topic):
                raise JobError(
                    f"{place}: sources.{name} reads {topic}: the job would read its own output"
                )
