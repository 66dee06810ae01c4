"""The jobs of `odradek pipeline`: plain functions that take a TaskRunner.

task_runner      what runs the parts of a job, and returns each result as soon as it is known:
process_tasks      in processes on this machine
spark_tasks        on Spark
topic_choice     which partitions a job works on
archive/         closed segments -> a Delta table, each record exactly once
following        the same, every few seconds
replay/          that Parquet -> a topic
stats/           records and bytes of topics, and the lag of groups
"""


class JobError(Exception):
    """A job cannot begin or finish; the message says why, and what to do."""


class OvertakenError(JobError):
    """Another process did the same work at the same time. What it did is complete."""


class CatalogError(JobError):
    """The catalog that lists an archive's files, too, cannot be read or changed now."""
