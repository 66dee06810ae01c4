"""The page of the options of `format("odradek")`."""

from collections.abc import Mapping

from odradek.pipeline.sink import write_options
from odradek.pipeline.source import options as read_options
from tests.docs.markdown import code, table

INTRODUCTION = """\
# Pipeline options

Options of `spark.read`, `spark.readStream`, `df.write` and `df.writeStream` with
`.format("odradek")`. Names are case-insensitive. An unknown name is an error. Options that begin
with `kafka.` are settings of the client, as Spark's Kafka source takes them; without `path`
reading needs `kafka.bootstrap.servers`, and writing always does. The options of the jobs
(`odradek pipeline …`) are on the page [Command line](cli.md#odradek-pipeline-archive). The
guides explain [reading](../guides/spark.md), [writing](../guides/spark-writing.md) and the
[jobs](../guides/jobs.md).
"""


def pipeline_page() -> str:
    """Every option of the data source and of the sink."""
    return "\n".join(
        [
            INTRODUCTION,
            "## Reading\n",
            "Exactly one of `assign`, `subscribe` and `subscribePattern` is required.\n",
            _options(read_options.OPTIONS),
            "## Writing\n",
            _options(write_options.OPTIONS),
            "## Refused\n",
            _options(read_options.REFUSED | write_options.REFUSED),
        ]
    )


def _options(options: Mapping[str, str]) -> str:
    return table(("option", ""), ((code(name), text) for name, text in options.items()))
