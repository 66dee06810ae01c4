"""Partition logs on disk, in Apache Kafka's own format. Synchronous; callers choose the thread.

log_manager    all logs of a node, in all its log directories; the broker uses this module
directories/   the parts of log_manager: find, open, create and delete logs in log directories;
               data_directory is one of these, with its lock and its identity
recovering/    load a log from its files after a stop or a crash
log            one partition's log; segment is one of its files with the indexes of that file
cleaning/      compaction
moving/        move logs to another log directory
log_reader     read a log's files without a broker, for tools and the pipeline
files          all file access of the store; disk_errors says which errors take a directory
               offline; filenames has the names; positioned and process_limits
               are what not every system has
"""

if __name__ != "odradek.storage":
    raise ImportError("import odradek.storage, not storage")
