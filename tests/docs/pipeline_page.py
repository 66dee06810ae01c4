"""The page of the options of `format("odradek")`."""

from collections.abc import Mapping

from odradek.config import java_client
from odradek.pipeline.option_values import CLIENT_PREFIX
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


CLIENT = """\
Jobs for Spark's Kafka connector carry settings of Kafka's Java client. Those that are not in this
table are passed on to librdkafka, which has them under the same name. Ignored ones are named in a
warning. A number outside of librdkafka's range becomes the nearest one in it. Settings of
librdkafka with the prefix `kafka.` are passed on, too.
"""


def _settings() -> list[tuple[str, str]]:
    """What becomes of each setting that is not passed on."""
    ignored = dict.fromkeys(java_client.IGNORED, "Ignored.")
    reasons = java_client.refused_settings(CLIENT_PREFIX)
    refused = {name: f"Refused: {why}." for name, why in reasons.items()}
    return sorted((java_client.TRANSLATED | ignored | refused).items())


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
            "## Settings of Kafka's Java client\n",
            CLIENT,
            table(("setting", ""), ((code(f"kafka.{name}"), text) for name, text in _settings())),
        ]
    )


def _options(options: Mapping[str, str]) -> str:
    return table(("option", ""), ((code(name), text) for name, text in options.items()))
