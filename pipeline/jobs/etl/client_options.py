"""The options of a job's sources and its sink, checked before there is a Spark.

A job that reads what it writes would never come to an end: that is refused where source and sink
are known to be of one broker, or where it is not known of which brokers they are.
"""

from collections.abc import Iterator
from typing import NamedTuple

from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.pipeline.sink.write_options import WriteOptions, write_options
from odradek.pipeline.source.options import ReadOptions, read_options
from odradek.pipeline.source.topics import Assigned, Topics

from .job_file import EtlJob

_BOOTSTRAP = "bootstrap.servers"


class CheckedOptions(NamedTuple):
    """What each view reads (but `format: kafka`: Spark checks its options), and the sink's."""

    sources: dict[str, ReadOptions]
    sink: WriteOptions


def checked_options(job: EtlJob) -> CheckedOptions:
    """Raises JobError."""
    try:
        sink = write_options(job.sink_options)
    except OptionError as error:
        raise JobError(f"sink.options: {error}") from None
    if sink.topic is not None:
        raise JobError("sink.options: the topic is not an option here: write sink.topic")
    sources: dict[str, ReadOptions] = {}
    for name, source in job.sources.items():
        if source.format == "odradek":
            try:
                sources[name] = read_options(job.source_options(name), streaming=True)
            except OptionError as error:
                raise JobError(f"sources.{name}.options: {error}") from None
            if sources[name].of_batches:
                raise JobError(f"sources.{name}.options: view=batches has no keys and values")
    _check_no_circle(job, sources, sink)
    return CheckedOptions(sources, sink)


def written_topics(job: EtlJob) -> Iterator[tuple[str, str]]:
    """Place in the file and name of each topic that is known to be written."""
    if job.sink.topic is not None:
        yield "sink.topic", job.sink.topic
    for name, source in job.sources.items():
        if source.on_bad_record == "dead-letter" and source.dead_letter_topic is not None:
            yield f"sources.{name}.dead_letter_topic", source.dead_letter_topic


def _check_no_circle(job: EtlJob, sources: dict[str, ReadOptions], sink: WriteOptions) -> None:
    for place, topic in written_topics(job):
        for name, options in sources.items():
            brokers = options.client.get(_BOOTSTRAP, sink.client[_BOOTSTRAP])
            if brokers == sink.client[_BOOTSTRAP] and _reads(options.topics, topic):
                raise JobError(
                    f"{place}: {topic} is read by sources.{name}: the job would read what it writes"
                )


def _reads(topics: Topics, topic: str) -> bool:
    if isinstance(topics, Assigned):
        return any(each.topic == topic for each in topics.partitions)
    return bool(topics.choose([TopicPartition(topic, 0)]))
